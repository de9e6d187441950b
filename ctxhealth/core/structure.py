"""The history's blocks, from the agent's snapshot or from the items seen."""

from __future__ import annotations

from collections.abc import Sequence

from ctxhealth.core.model import Block, Structure
from ctxhealth.core.state import ChatState
from ctxhealth.wire.events import HistorySnapshot

_FIXED = (("system", "System prompt"), ("tools", "Tool schemas"), ("extras", "Extras"))


def structure_from_snapshot(
    parts: Sequence[HistorySnapshot], at_seq: int | None = None
) -> Structure:
    """The blocks of one snapshot, all its parts in order; unknown when there is none."""
    if not parts:
        return Structure()
    last = parts[-1]
    blocks: list[Block] = []
    for kind, title in _FIXED:
        tokens = _newest(parts, kind)
        if tokens is not None:
            blocks.append(Block(kind=kind, id=kind, tokens=tokens, title=title))
    for part in parts:
        blocks += [
            Block(kind="bulk", id=bulk.id, tokens=bulk.tokens, messages=bulk.records,
                  title=bulk.excerpt)
            for bulk in part.bulks
        ]  # fmt: skip
    for part in parts:
        blocks += [
            Block(kind="topic", id=topic.id, tokens=topic.tokens, title=topic.title,
                  messages=topic.messages, largest=topic.largest)
            for topic in part.topics
        ]  # fmt: skip
    for part in reversed(parts):
        if part.current is not None:
            current = part.current
            blocks.append(
                Block(kind="current", id="current", tokens=current.tokens, title="Current topic",
                      messages=current.messages)
            )  # fmt: skip
            break
    return Structure(source="snapshot", revision=last.revision, at_seq=at_seq, blocks=tuple(blocks))


def structure_from_items(state: ChatState) -> Structure:
    """The blocks as far as the items tell: one for each part of which anything is known."""
    history = state.history
    known = (
        ("system", "System prompt", history.system, False),
        ("tools", "Tool schemas", history.tools, False),
        ("extras", "Extras", history.extras, False),
        ("bulk", "Summarised", history.bulks, history.estimate),
        ("topic", "Past turns", history.topics, history.estimate),
        ("current", "Current turn", history.current, history.estimate),
    )
    blocks = tuple(
        Block(kind=kind, id=kind, tokens=tokens, title=title, estimate=estimate)
        for kind, title, tokens, estimate in known
        if tokens
    )
    if not blocks:
        return Structure()
    return Structure(source="items", at_seq=state.seq, blocks=blocks)


def _newest(parts: Sequence[HistorySnapshot], name: str) -> int | None:
    for part in reversed(parts):
        value: int | None = getattr(part, name)
        if value is not None:
            return value
    return None
