"""Charts as SVG files of their own: a fixed width, their own colours, their own names."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ctxhealth.web import icicle, svg
from ctxhealth.web.incidents_axis import Axis
from ctxhealth.web.incidents_axis_svg import PLOT, drawing, height_of, lane_height
from ctxhealth.web.incidents_moment import Moment

NAMES = 116  # pixels for the lanes' names
WIDTH = 1_000  # of the drawing beside them
GAP = 10

_FONT = 'font-family:system-ui,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;font-size:11px'
_STYLE = (
    f"svg{{{_FONT};overflow:visible}}"
    "text{fill:#50585f;stroke:none}"
    ".ax-ground{fill:#f1f2f0}.ax-level{stroke:#e2e3e0}.ax-base{stroke:#c9ccc8}"
    ".ax-load,.ax-window,.ax-budget,.ax-trigger{fill:none;vector-effect:non-scaling-stroke}"
    ".ax-load{stroke:#0b5cad;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
    ".ax-load.est{stroke-dasharray:4 4}.est{opacity:.85}.ax-window{stroke:#636b73}"
    ".ax-budget{stroke:#a82c0b;stroke-width:1.5;stroke-dasharray:6 4}"
    ".ax-trigger{stroke:#7d5200;stroke-width:1.5}"
    "text.ax-l-budget{fill:#a82c0b}text.ax-l-trigger{fill:#7d5200}.ax-far path{fill:#7d5200}"
    ".ax-critical{fill:#a82c0b}.ax-warning{fill:#b67a09}.ax-good{fill:#0a6549}"
    ".ax-info{fill:#4a8db3}.ax-active{fill:#0b5cad}.ax-neutral{fill:#9aa3aa}"
    ".ax-find .ax-critical{fill:#fdeee8;stroke:#a82c0b}"
    ".ax-find .ax-warning{fill:#fcf3dd;stroke:#7d5200}"
    ".ax-find .ax-info{fill:#e8f2f8;stroke:#205f86}.ax-name{fill:#14171a}"
    ".f-window,.f-nowindow,.f-pending,.f-unknown{fill:#f1f2f0;stroke:#c9ccc8}"
    ".s-system,.s-system2{fill:#87919c}.s-tools,.s-tools2{fill:#a9b2bb}"
    ".s-extras,.s-extras2{fill:#c0a9cf}.s-bulks{fill:#1f7078}.s-bulks2{fill:#2b828b}"
    ".s-topics{fill:#5aa9ae}.s-topics2{fill:#78bcc1}.s-current,.s-current2{fill:#3a70bf}"
    ".s-unassigned,.s-unassigned2{fill:#9aa59d}.s-beyond,.s-largest{fill:#c8481a}"
    ".s-reserve{fill:url(#hatch)}.s-projection{fill:url(#hatch);stroke:#3a70bf}"
    "rect[class^=s-]{stroke:#fff;stroke-width:.75}"
    ".t-trigger,.t-budget,.t-window{stroke:#14171a;stroke-width:1.5}.t-budget{stroke-dasharray:2 2}"
    ".in-bulks,.in-current,.in-largest{fill:#fff}"
    ".in-system,.in-tools,.in-extras,.in-unassigned,.in-topics{fill:#0d1a1c}"
    ".cell{overflow:hidden}.h-ground{fill:#f2f3f2}.h-line{fill:#c3c8cd}"
)
_HATCH = SafeString(
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect class="h-ground" width="6" height="6"/>'
    '<rect class="h-line" width="2.5" height="6"/></pattern></defs>'
)


def axis_file(axis: Axis) -> str:
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


def moment_file(moment: Moment) -> str:
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


def _file(inner: SafeString, width: int, height: int, name: str) -> str:
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" '
        'viewBox="0 0 {0} {1}" role="img"><title>{2}</title><style>{3}</style>{4}'
        '<rect width="100%" height="100%" fill="#fff"/>{5}</svg>\n',
        width,
        height,
        name,
        SafeString(_STYLE),
        _HATCH,
        inner,
    )


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
