"""Geometry of the window strip: the width is the window, whatever stands on it is to scale.

Positions are per cent of the drawing's width. The window takes ``WINDOW_SHARE`` of it, so that
load beyond the window has somewhere to run past the edge and strips of one column compare.
"""

from __future__ import annotations

from dataclasses import dataclass

from ctxhealth.core.model import Block, ChatSummary, Source
from ctxhealth.web.blocks import names_of
from ctxhealth.web.format import number, words

WINDOW_SHARE = 94.0
MIN_SPLIT = 0.25  # per cent of the width below which single blocks are not told apart

KIND_TITLES = {
    "system": "system prompt",
    "tools": "tool schemas",
    "extras": "extras",
    "bulks": "bulks",
    "topics": "topics",
    "current": "current topic",
    "unassigned": "not assigned",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One rectangle: ``kind`` picks the colour, ``label`` is drawn where it fits."""

    kind: str
    x: float
    width: float
    title: str
    label: str = ""
    estimate: bool = False
    shade: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    kind: str
    x: float
    title: str


@dataclass(frozen=True, slots=True)
class Strip:
    """``window_x`` is where the window ends, None where its size is unknown."""

    pieces: tuple[Piece, ...]
    ticks: tuple[Tick, ...]
    window_x: float | None
    name: str
    beyond: bool
    load_state: str
    reserve: Piece | None = None
    projection: Piece | None = None


def strip_of(summary: ChatSummary, blocks: tuple[Block, ...] = ()) -> Strip:
    """The strip of a chat; with ``blocks``, bulks and topics are drawn one by one."""
    scale = _scale(summary)
    pieces = tuple(_pieces(summary, blocks, scale)) if scale else ()
    end = pieces[-1].x + pieces[-1].width if pieces else 0.0
    window = summary.window.value
    return Strip(
        pieces=pieces,
        ticks=tuple(_ticks(summary, scale)) if scale else (),
        window_x=WINDOW_SHARE if window else None,
        name=strip_name(summary),
        beyond=bool(window and summary.load.value is not None and summary.load.value > window),
        load_state=_load_state(summary),
        reserve=_reserve(summary, scale),
        projection=_projection(summary, scale, end),
    )


def _scale(summary: ChatSummary) -> float:
    """Per cent of the width per token; 0 where nothing is known to scale by."""
    largest = summary.window.value or max(
        summary.load.value or 0, summary.projection or 0, summary.budget or 0
    )
    return WINDOW_SHARE / largest if largest else 0.0


def _load_state(summary: ChatSummary) -> str:
    if summary.load.source is Source.PENDING:
        return "pending"
    if summary.load.value is None:
        return "unknown"
    if not summary.load.reliable:
        return "unreliable"
    return "measured" if summary.load.source in (Source.PROVIDER, Source.ERROR) else "estimate"


def _pieces(summary: ChatSummary, blocks: tuple[Block, ...], scale: float) -> list[Piece]:
    estimate = _load_state(summary) != "measured"
    pieces: list[Piece] = []
    x = 0.0
    for segment in summary.segments:
        width = segment.tokens * scale
        kind = segment.kind if segment.kind in KIND_TITLES else "unassigned"
        own = _blocks_of(kind, blocks)
        split = _split(own, segment.tokens, x, width, estimate or segment.estimate)
        pieces.extend(split or [_piece(kind, segment.tokens, x, width, estimate
                                       or segment.estimate)])  # fmt: skip
        x += width
    if not pieces and summary.load.value:
        load = summary.load.value
        pieces.append(_piece("unassigned", load, 0.0, load * scale, estimate))
    return pieces


def _piece(kind: str, tokens: int, x: float, width: float, estimate: bool) -> Piece:
    title = KIND_TITLES.get(kind, kind)
    about = "about " if estimate else ""
    return Piece(kind, x, width, f"{title}: {about}{number(tokens)} tokens", title, estimate)


def _blocks_of(kind: str, blocks: tuple[Block, ...]) -> list[Block]:
    wanted = {"bulks": "bulk", "topics": "topic"}.get(kind)
    return [block for block in blocks if block.kind == wanted and block.tokens]


def _split(blocks: list[Block], tokens: int, x: float, width: float, estimate: bool) -> list[Piece]:
    """Single bulks and topics inside their segment, scaled so that they fill it exactly."""
    total = sum(block.tokens or 0 for block in blocks)
    if len(blocks) < 2 or not total or width / len(blocks) < MIN_SPLIT:
        return []
    pieces = []
    for index, (block, name) in enumerate(zip(blocks, names_of(blocks), strict=True)):
        part = width * (block.tokens or 0) / total
        about = "about " if estimate or total != tokens else ""
        title = f"{name}: {about}{number(block.tokens)} tokens"
        kind = block.kind + "s"
        pieces.append(Piece(kind, x, part, title, "", estimate, index % 2 == 1))
        x += part
    return pieces


def _ticks(summary: ChatSummary, scale: float) -> list[Tick]:
    ticks = []
    trigger = summary.trigger.on_strip
    if trigger is not None and trigger * scale <= 100:
        source = summary.trigger.source.value
        ticks.append(Tick("trigger", trigger * scale, f"trigger {number(trigger)} ({source})"))
    if summary.budget is not None and summary.budget * scale <= 100:
        ticks.append(Tick("budget", summary.budget * scale, f"budget {number(summary.budget)}"))
    return ticks


def _reserve(summary: ChatSummary, scale: float) -> Piece | None:
    window, budget = summary.window.value, summary.budget
    if not scale or window is None or budget is None or budget >= window:
        return None
    assumed = " (assumed)" if summary.reserve_assumed else ""
    title = f"reserve{assumed}: {number(window - budget)} tokens not usable for the prompt"
    return Piece("reserve", budget * scale, (window - budget) * scale, title)


def _projection(summary: ChatSummary, scale: float, end: float) -> Piece | None:
    if not scale or summary.projection is None or summary.load.value is None:
        return None
    grown = summary.projection - summary.load.value
    if grown <= 0:
        return None
    return Piece(
        "projection", end, grown * scale, f"added since: about {number(grown)} tokens", "", True
    )


def strip_name(summary: ChatSummary) -> str:
    """The drawing in words: load, window, parts; the lines are said beside it."""
    load, window = summary.load, summary.window.value
    said = [_load_words(summary)]
    if load.value is not None and window is not None and load.value > window:
        said.append(f"{number(load.value - window)} beyond the window")
    parts = [f"{s.kind} {number(s.tokens)}" for s in summary.segments]
    if parts:
        said.append(", ".join(parts))
    return "; ".join(said)


def _load_words(summary: ChatSummary) -> str:
    load = summary.load
    window = f"of {number(summary.window.value)} tokens" if summary.window.value else (
        "tokens, window unknown"
    )  # fmt: skip
    if load.value is None:
        return f"load {words(load.source.value)} {window}"
    about = "" if load.source in (Source.PROVIDER, Source.ERROR) else "about "
    doubt = "" if load.reliable else " (unreliable)"
    return f"{about}{number(load.value)} {window}{doubt}"
