"""Bars, strips and lines as SVG without a viewBox: per-cent positions, so text never stretches.

Only numbers, class names of this package and escaped text go in; ``format_html`` escapes them.
Colours are classes, because the content policy allows no inline style.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ctxhealth.web.format import number
from ctxhealth.web.strip import WINDOW_SHARE, Piece, Strip, Tick

# top of the bar, height of the bar, height of the drawing; pixels
SIZES = {"compare": (3, 22, 28), "large": (20, 44, 86)}
LABEL_ROOM = 7.0  # per cent of the width that a label inside a piece needs


def _p(value: float) -> str:
    return f"{value:.4g}%"


def _row_svg(strip: Strip) -> SafeString:
    """The strip of a board row, as few bytes as it can be: places and heights are in the CSS.

    A hundred of them stand on a page, so the rectangles are written at once; what goes in are
    numbers and class names of this package, nothing else.
    """
    pieces = [*strip.pieces, *(p for p in (strip.projection, strip.reserve) if p)]
    drawn = [
        f'<rect class="{_NAMED[_classes(p)]}" x="{p.x:.3g}%" width="{p.width:.3g}%"/>'
        for p in pieces
    ]
    drawn += [f'<rect class="{_NAMED["t-" + t.kind]}" x="{t.x:.3g}%"/>' for t in strip.ticks]
    frame = _NAMED["f-" + _frame_kind(strip)]
    return format_html(
        '<svg class="strip row" role="img" aria-label="{}"><rect class="{}"/>{}{}</svg>',
        strip.name,
        frame,
        SafeString("".join(drawn)),
        _beyond(strip, 2, 12),
    )


class _Names(dict[str, str]):
    """Class names made of letters, digits, blanks and dashes; anything else is a bug here."""

    def __missing__(self, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9 -]+", name):
            raise ValueError(f"class: {name!r} is not a name")
        self[name] = name
        return name


_NAMED = _Names()


def _frame_kind(strip: Strip) -> str:
    if strip.load_state in ("pending", "unknown"):
        return strip.load_state
    return "window" if strip.window_x else "nowindow"


def strip_svg(strip: Strip, size: str) -> SafeString:
    """The window strip; ``size`` is row, compare or large (the large one has labels)."""
    if size == "row":
        return _row_svg(strip)
    top, bar, height = SIZES[size]
    large = size == "large"
    return format_html(
        '<svg class="strip strip-{}" role="img" height="{}" aria-label="{}">{}{}{}{}{}</svg>',
        size,
        height,
        strip.name,
        _frame(strip, top, bar, known=not large),
        _rects(strip.pieces, top, bar, titles=large),
        _extras(strip, top, bar),
        _ticks(strip.ticks, top, bar),
        _labels(strip, top, bar) if large else "",
    )


def _frame(strip: Strip, top: int, bar: int, *, known: bool) -> SafeString:
    """``known`` draws what is free plainly, whatever the reading is of: beside another strip a
    hatched ground would read as a reserve."""
    width = strip.window_x or WINDOW_SHARE
    return format_html(
        '<rect class="f-{}" y="{}" width="{}" height="{}"/>',
        ("window" if strip.window_x else "nowindow") if known else _frame_kind(strip),
        top,
        _p(width),
        bar,
    )


def _rects(pieces: Iterable[Piece], top: int, bar: int, *, titles: bool) -> SafeString:
    if not titles:
        return format_html_join(
            "",
            '<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>',
            ((_classes(p), _p(p.x), top, _p(p.width), bar) for p in pieces),
        )
    return format_html_join(
        "",
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
        ((_classes(p), _p(p.x), top, _p(p.width), bar, p.title) for p in pieces),
    )


def _classes(piece: Piece) -> str:
    estimate = " est" if piece.estimate else ""
    return f"s-{piece.kind}{'2' if piece.shade else ''}{estimate}"


def _extras(strip: Strip, top: int, bar: int) -> SafeString:
    """Growth since the reading, the reserve, and the part that runs past the window's edge."""
    extra = [piece for piece in (strip.projection, strip.reserve) if piece]
    return format_html("{}{}", _rects(extra, top, bar, titles=True), _beyond(strip, top, bar))


def _beyond(strip: Strip, top: int, bar: int) -> SafeString:
    if not strip.beyond or not strip.pieces:
        return SafeString("")
    last = strip.pieces[-1]
    width = min(100.0, last.x + last.width) - WINDOW_SHARE
    return format_html(
        '<rect class="s-beyond" x="{}" y="{}" width="{}" height="{}"/>',
        _p(WINDOW_SHARE),
        top - 2,
        _p(max(0.4, width)),
        bar + 4,
    )


def _ticks(ticks: Iterable[Tick], top: int, bar: int) -> SafeString:
    return format_html_join(
        "",
        '<line class="t-{}" x1="{}" x2="{}" y1="{}" y2="{}"/>',
        ((t.kind, _p(t.x), _p(t.x), top - 2, top + bar + 2) for t in ticks),
    )


def _labels(strip: Strip, top: int, bar: int) -> SafeString:
    return format_html(
        "{}{}{}",
        format_html_join("", _INSIDE, _inside_labels(strip.pieces, top, bar)),
        format_html_join("", _OUTSIDE, _tick_labels(strip, top, bar)),
        _window_label(strip, top, bar),
    )


_INSIDE = (
    '<svg x="{}" y="{}" width="{}" height="{}"><text class="in-{}" x="6" y="{}">{}</text></svg>'
)
_OUTSIDE = '<text class="out" x="{}" y="{}" text-anchor="{}" dx="{}">{}</text>'


def _inside_labels(
    pieces: Sequence[Piece], top: int, bar: int
) -> Iterator[tuple[str, int, str, int, str, int, str]]:
    for piece in pieces:
        if piece.label and piece.width >= LABEL_ROOM:
            yield _p(piece.x), top, _p(piece.width), bar, piece.kind, bar // 2 + 4, piece.label


def _tick_labels(strip: Strip, top: int, bar: int) -> Iterator[tuple[str, int, str, int, str]]:
    """The trigger above the bar, the budget below it: they never collide."""
    for tick in strip.ticks:
        y = top - 7 if tick.kind == "trigger" else top + bar + 16
        anchor, dx = ("end", -4) if tick.x > 30 else ("start", 4)
        yield _p(tick.x), y, anchor, dx, tick.title


def _window_label(strip: Strip, top: int, bar: int) -> SafeString:
    if strip.window_x is None:
        return SafeString("")
    return format_html(
        '<line class="t-window" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>',
        _p(strip.window_x),
        top - 2,
        top + bar + 2,
    )


def spark_svg(trend: Sequence[int | None], trigger: int | None) -> SafeString:
    """The last readings as a line with the trigger dashed; gaps stay gaps. 118 x 28 units.

    Hidden from screen readers: the chat's page has the same as a table, a row has its figures.
    """
    known = [value for value in trend if value is not None]
    if len(known) < 2:
        return SafeString("")
    top = max(*known, trigger or 0) * 1.04 or 1
    return format_html(
        '<svg class="spark" viewBox="0 0 118 28" aria-hidden="true">{}<path d="{}"/></svg>',
        _spark_trigger(trigger, top),
        _spark_path(trend[-60:], top),
    )


def _spark_trigger(trigger: int | None, top: float) -> SafeString:
    if trigger is None:
        return SafeString("")
    y = round(26 - 24 * trigger / top)
    return format_html('<path class="t" d="M0 {}h118"/>', y)


def _spark_path(trend: Sequence[int | None], top: float) -> str:
    """Two units a reading, the newest at the right edge; flat stretches are one step."""
    start = 118 - 2 * (len(trend) - 1)
    path: list[str] = []
    last: int | None = None
    flat = 0
    for index, value in enumerate([*trend, None]):
        y = None if value is None else round(26 - 24 * value / top)
        if last is not None and y == last:
            flat += 2
            continue
        if last is not None and (flat or path[-1][0] == "M"):
            path.append(f"h{flat}")
            flat = 0
        if y is not None:
            path.append(f"M{start + 2 * index} {y}" if last is None else f"l2 {y - last}")
        last = y
    return "".join(path).replace(" -", "-")


def bar_svg(parts: Iterable[tuple[str, float]], name: str, height: int = 8) -> SafeString:
    """A horizontal bar; ``parts`` are (class, per cent) from the left."""
    x = 0.0
    rects = []
    for kind, width in parts:
        rects.append((kind, _p(x), _p(max(0.0, min(100.0 - x, width))), height))
        x += width
    return format_html(
        '<svg class="bar" height="{}" role="img" aria-label="{}">'
        '<rect class="track" width="100%" height="{}" rx="2"/>{}</svg>',
        height,
        name,
        height,
        format_html_join("", '<rect class="{}" x="{}" width="{}" height="{}"/>', rects),
    )


def change_svg(before: int | None, after: int | None, top: int | None) -> SafeString:
    """Before over after of one compaction, to the scale of ``top``."""
    if before is None or not top:
        return SafeString("")
    name = f"before {number(before)}, after {number(after)}"
    kept = 100 * (after or 0) / top
    tone = "b-grew" if after is not None and after > before else "b-after"
    return format_html(
        '<svg class="change" height="12" role="img" aria-label="{}">'
        '<rect class="b-before" width="{}" height="5"/>'
        '<rect class="{}" y="7" width="{}" height="5"/></svg>',
        name,
        _p(100 * before / top),
        tone,
        _p(kept) if after is not None else "0",
    )
