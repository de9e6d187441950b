"""The prompt cut into parts that add up to the load shown."""

from __future__ import annotations

from ctxhealth.core.meter import load_now
from ctxhealth.core.model import Segment
from ctxhealth.core.state import ChatState


def segments(state: ChatState) -> tuple[Segment, ...]:
    """Parts in the order of the strip; with a load they add up to it exactly.

    Smaller parts leave an ``unassigned`` rest; larger ones (the agent counts otherwise than the
    provider) are scaled down and marked as estimates.
    """
    load = _shown(state)
    parts = _known(state)
    total = sum(part.tokens for part in parts)
    if load is None or total == load:
        return tuple(parts)
    if total < load:
        rest = Segment(kind="unassigned", tokens=load - total, estimate=not parts)
        return (*parts, rest)
    return _scaled(parts, total, load)


def _shown(state: ChatState) -> int | None:
    return state.meter.estimate if state.meter.pending else load_now(state)


def _known(state: ChatState) -> list[Segment]:
    history = state.history
    guess = history.estimate
    found = (
        ("system", history.system, False),
        ("tools", history.tools, False),
        ("bulks", history.bulks, guess),
        ("topics", history.topics, guess),
        ("current", history.current, guess),
        ("extras", history.extras, False),
    )
    return [
        Segment(kind=kind, tokens=tokens, estimate=estimate)
        for kind, tokens, estimate in found
        if tokens
    ]


def _scaled(parts: list[Segment], total: int, load: int) -> tuple[Segment, ...]:
    """Shares of the load by largest remainder, so that nothing is lost to rounding."""
    shares = [part.tokens * load // total for part in parts]
    rest = load - sum(shares)
    order = sorted(range(len(parts)), key=lambda index: -(parts[index].tokens * load % total))
    for index in order[:rest]:
        shares[index] += 1
    return tuple(
        Segment(kind=part.kind, tokens=share, estimate=True)
        for part, share in zip(parts, shares, strict=True)
        if share
    )
