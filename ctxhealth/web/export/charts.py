"""Charts as SVG files of their own: a fixed width, their own colours, their own names."""

from __future__ import annotations

from django.template.loader import get_template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ctxhealth.web import icicle, svg
from ctxhealth.web.incidents_axis import Axis
from ctxhealth.web.incidents_axis_svg import PLOT, drawing, height_of, lane_height
from ctxhealth.web.incidents_moment import Moment

NAMES = 116  # pixels for the lanes' names
WIDTH = 1_000  # of the drawing beside them
GAP = 10


def axis_file(axis: Axis) -> SafeString:
    """The time axis with the lanes' names beside it."""
    height = height_of(axis)
    inner = format_html(
        '{}<svg x="{}" width="{}" height="{}">{}</svg>',
        _names(axis),
        NAMES,
        WIDTH,
        height,
        drawing(axis),
    )
    return _file(inner, NAMES + WIDTH + GAP, height, axis.name)


def moment_file(moment: Moment) -> SafeString:
    """The window strip and the structure beneath it, as of one event."""
    strip = svg.strip_svg(moment.strip, "large")
    structure = icicle.icicle_svg(moment.detail.structure)
    top = svg.SIZES["large"][2]
    inner = format_html(
        '<svg width="{0}" height="{1}">{2}</svg><svg y="{1}" width="{0}" height="{3}">{4}</svg>',
        WIDTH,
        top + GAP,
        strip,
        icicle.height_of(moment.detail.structure),
        structure,
    )
    height = top + GAP + icicle.height_of(moment.detail.structure)
    return _file(inner, WIDTH, height, f"{moment.says}. {moment.strip.name}")


def _file(inner: SafeString, width: int, height: int, name: str) -> SafeString:
    context = {"inner": inner, "width": width, "height": height, "name": name}
    return format_html("{}", get_template("incidents/chart.svg").render(context))


def _names(axis: Axis) -> SafeString:
    rows: list[tuple[int, float, str]] = [(NAMES - 8, 12, "load, tokens")]
    top, named = PLOT, ""
    for lane in axis.lanes:
        middle = top + lane_height(lane) / 2 + 4
        title = lane.name if lane.name == "findings" else lane.title
        if title != named:
            rows.append((NAMES - 8, middle, title))
        top, named = top + lane_height(lane), title
    rows.append((NAMES - 8, top + 17, "UTC"))
    return format_html_join("", '<text x="{}" y="{}" text-anchor="end">{}</text>', rows)
