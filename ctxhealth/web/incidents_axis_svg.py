"""The axis as SVG: within a page, and as a file that stands alone.

Only numbers, class names of this package and escaped text go in. In a page colours come from the
style sheet; a file carries its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ctxhealth.web.format import short
from ctxhealth.web.incidents_axis import Axis, Band, Lane, Line, Mark, Point

PLOT = 176  # pixels
LANE = 22
ROW = 20
FOOT = 24
UNITS = 1_000  # of the stretched drawing inside the plot
SHAPES = {
    "critical": "M0-5 5 4-5 4z",
    "warning": "M0-5 5 0 0 5-5 0z",
    "good": "M0-4.5a4.5 4.5 0 1 0 .01 0z",
}
SQUARE = "M-4-4h8v8h-8z"
LABEL_SIDE = 70.0  # per cent: a band that begins beyond it has its label on the left


def height_of(axis: Axis) -> int:
    return PLOT + sum(map(lane_height, axis.lanes)) + FOOT


def lane_height(lane: Lane) -> int:
    return ROW if lane.name == "findings" else LANE


def axis_svg(axis: Axis, *, now: int | None = None, here: str = "") -> SafeString:
    """The drawing for a page; ``now`` is the moment that the scrubber stands at, in ms.

    With ``here``, an address that ends in ``?`` or ``&``, each mark is a link to its moment, out
    of the order of the tab key: the scrubber steps through the same.
    """
    return format_html(
        '<svg class="axis" width="100%" height="{0}" role="group" aria-label="{1}">{2}{3}</svg>',
        height_of(axis),
        axis.name,
        drawing(axis, here),
        _cursor(axis, now),
    )


def _cursor(axis: Axis, now: int | None) -> SafeString:
    if now is None:
        return SafeString("")
    x = f"{axis.x(now)}%"
    return format_html(
        '<line class="cursor" data-cursor="" x1="{0}" x2="{0}" y1="0" y2="{1}"/>',
        x,
        height_of(axis) - FOOT,
    )


def drawing(axis: Axis, here: str = "") -> SafeString:
    """Everything of it but the frame."""
    return format_html("{}{}{}", _plot(axis), _lanes(axis, here), _foot(axis))


def _plot(axis: Axis) -> SafeString:
    return format_html(
        '<rect class="ax-ground" width="100%" height="{}"/>{}'
        '<svg viewBox="0 0 {} {}" width="100%" height="{}" preserveAspectRatio="none">{}{}</svg>'
        "{}{}",
        PLOT,
        _levels(axis),
        UNITS,
        UNITS,
        PLOT,
        format_html_join("", '<path class="ax-{}" d="{}"/>', _limits(axis.lines)),
        _load(axis.points),
        format_html_join("", _LIMIT, _limit_labels(axis.lines)),
        format_html_join("", _BEYOND, _beyond(axis.points)),
    )


_LIMIT = '<text class="ax-l-{}" x="100%" dx="-4" y="{}" text-anchor="end">{}</text>'
_BEYOND = (
    '<svg class="ax-far" x="{}%" y="10"><path d="M0-6 5 3-5 3z"/><text x="8" y="3">{}</text></svg>'
)


def _levels(axis: Axis) -> SafeString:
    return format_html_join(
        "",
        '<line class="ax-level" x2="100%" y1="{0}" y2="{0}"/><text x="4" y="{1}">{2}</text>',
        ((_y(y), _y(y) - 3, text) for y, text in axis.levels),
    )


def _y(share: float) -> float:
    return round(PLOT * (1 - share), 1)


def _units(x: float, y: float) -> str:
    return f"{x * UNITS / 100:.5g} {UNITS * (1 - y):.4g}"


def _limits(lines: Iterable[Line]) -> Iterator[tuple[str, str]]:
    for line in lines:
        path, last = [], None
        for x, y in line.points:
            if last is not None:
                path.append(f"H{x * UNITS / 100:.5g}")
            if y is not None:
                path.append(f"M{_units(x, y)}" if last is None else f"V{UNITS * (1 - y):.4g}")
            last = y
        yield line.kind, "".join(path)


def _limit_labels(lines: Iterable[Line]) -> Iterator[tuple[str, float, str]]:
    """Names at the right edge, moved apart where lines stand close."""
    above = -20.0
    known = [(line, line.points[-1][1]) for line in lines if line.points[-1][1] is not None]
    for line, y in sorted(known, key=lambda each: -(each[1] or 0)):
        at = _y(y or 0)
        # Under a line that runs along the upper edge, above any other.
        above = max(at + 12 if at < 16 else at - 4, above + 13)
        yield line.kind, round(above, 1), f"{line.kind} {short(line.value)}"


def _load(points: tuple[Point, ...]) -> SafeString:
    """Measured solid, estimated dashed; where nothing is known there is no line."""
    measured: list[str] = []
    estimated: list[str] = []
    last: Point | None = None
    for point in points:
        if point.y is not None:
            here = _units(point.x, point.y)
            if last is not None and last.y is not None:
                soft = not (point.measured and last.measured)
                path = estimated if soft else measured
                path.append(f"M{_units(last.x, last.y)}L{here}")
            else:
                # A dot: a line of no length with round ends.
                (measured if point.measured else estimated).append(f"M{here}h0")
        last = point
    return format_html(
        '<path class="ax-load" d="{}"/><path class="ax-load est" d="{}"/>',
        "".join(measured),
        "".join(estimated),
    )


def _beyond(points: Iterable[Point]) -> Iterator[tuple[float, str]]:
    free = -100.0
    for point in points:
        if point.beyond is not None and point.x > free:
            yield point.x, short(point.beyond)
            free = point.x + 6


def _lanes(axis: Axis, here: str) -> SafeString:
    top, drawn = PLOT, []
    for lane in axis.lanes:
        height = lane_height(lane)
        kind = "ax-lane ax-find" if lane.name == "findings" else "ax-lane"
        bands, marks = _bands(lane, height, here), _marks(lane, here)
        drawn.append((kind, top, height, height / 2, bands, marks))
        top += height
    return format_html_join(
        "",
        '<svg class="{0}" y="{1}" width="100%" height="{2}">'
        '<line class="ax-level" x2="100%" y1="{3}" y2="{3}"/>{4}{5}</svg>',
        drawn,
    )


def _bands(lane: Lane, height: int, here: str) -> SafeString:
    thick = 16 if lane.name == "findings" else 8
    top = (height - thick) / 2
    return format_html_join(
        "",
        "{}{}",
        ((_linked(band, _band(band, top, thick), here), _label(band, height))
         for band in lane.bands),
    )  # fmt: skip


def _band(band: Band, top: float, thick: int) -> SafeString:
    return format_html(
        '<rect class="ax-{}" x="{}%" width="{}%" y="{}" height="{}" rx="2">'
        "<title>{}</title></rect>",
        band.tone,
        band.x,
        band.width,
        top,
        thick,
        band.says,
    )


def _label(band: Band, height: int) -> SafeString:
    """Inside a band that is wide, beside one that is not."""
    if not band.label:
        return SafeString("")
    anchor, dx = ("end", -5) if band.x > LABEL_SIDE else ("start", 5)
    return format_html(
        '<text class="ax-name" x="{}%" dx="{}" y="{}" text-anchor="{}">{}</text>',
        band.x,
        dx,
        height / 2 + 4,
        anchor,
        band.label,
    )


def _marks(lane: Lane, here: str) -> SafeString:
    return format_html_join("", "{}", ((_linked(mark, _mark(mark), here),) for mark in lane.marks))


def _mark(mark: Mark) -> SafeString:
    return format_html(
        '<svg class="ax-mark" x="{}%" y="50%"><path class="ax-{}" d="{}"><title>{}</title></path>'
        "</svg>",
        mark.x,
        mark.tone,
        SHAPES.get(mark.tone, SQUARE),
        mark.says,
    )


def _linked(each: Mark | Band, drawn: SafeString, here: str) -> SafeString:
    if not here or each.seq is None:
        return drawn
    return format_html(
        '<a href="{4}at={0}#moment" data-seq="{0}" data-at="{1}" tabindex="-1" aria-label="{2}">'
        "{3}</a>",
        each.seq,
        each.at,
        each.says,
        drawn,
        here,
    )


def _foot(axis: Axis) -> SafeString:
    y = height_of(axis) - FOOT
    return format_html(
        '<line class="ax-base" x2="100%" y1="{0}" y2="{0}"/>{1}',
        y,
        format_html_join(
            "",
            '<g class="ax-tick{0}"><line class="ax-base" x1="{1}%" x2="{1}%" y1="{2}" y2="{3}"/>'
            '<text x="{1}%" y="{4}" text-anchor="{5}">{6}</text></g>',
            ((" odd" if i % 2 else "", x, y, y + 4, y + 17, _anchor(x), text)
             for i, (x, text) in enumerate(axis.ticks)),
        ),
    )  # fmt: skip


def _anchor(x: float) -> str:
    return "start" if x < 3 else "end" if x > 97 else "middle"
