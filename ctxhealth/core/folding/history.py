"""Items, snapshots, membership and pairs."""

from __future__ import annotations

from typing import TypeGuard

from ctxhealth.core.changes import ItemChange
from ctxhealth.core.folding.context import Context
from ctxhealth.core.folding.replies import unusable_message, usable_message
from ctxhealth.core.folding.tails import user_message, watch_order, watch_removed
from ctxhealth.core.parts import (
    HEAVY_ITEMS,
    OPEN_CALLS,
    RECENT_PAIRS,
    Heavy,
    History,
    OpenCall,
    Pair,
)
from ctxhealth.core.state import ChatState
from ctxhealth.wire.events import CountedMessage, HistorySnapshot, MessageAdded
from ctxhealth.wire.parts import SnapshotItem

EXCERPT = 120


def on_message_added(state: ChatState, event: MessageAdded, context: Context) -> None:
    history = state.history
    history.items += 1
    tokens = event.tokens
    if tokens is None:
        tokens = _not_told(history, event)
    if tokens:
        _count(state, event, tokens, context)
    if event.calls or event.answers:
        _pairs(history, event, context)
    if event.role == "user" and event.kind == "text":
        user_message(history, event)
    elif event.kind == "image":
        # From here on a request's bytes say little of its tokens.
        state.meter.bytes_ok = False
    if event.unusable is not None:
        unusable_message(state, event.unusable)
    elif event.role == "assistant":
        usable_message(state, event)
    context.changes.items.append(
        ItemChange(
            "add",
            event.id,
            context.seq,
            context.at,
            event.role,
            event.kind,
            tokens,
            event.topic or "current",
            event.turn,
            event.name,
            event.excerpt,
            event.calls,
            event.answers,
            event.read,
        )
    )


def _not_told(history: History, event: MessageAdded) -> int | None:
    """What stands in for a size that the agent did not give: a count of ours, or a guess."""
    if _is_exact(event):
        return event.counted.tokens
    history.unknown_items += 1
    if history.snapshot_seq is None:
        history.value = None
    if isinstance(event, CountedMessage):
        history.estimate = True
        return event.counted.tokens
    return _by_characters(history, event.chars)


def _is_exact(event: MessageAdded) -> TypeGuard[CountedMessage]:
    return isinstance(event, CountedMessage) and event.counted.exact


def _by_characters(history: History, chars: int | None) -> int | None:
    """Where only characters are known (transcripts), a quarter of them, marked an estimate."""
    if chars is None:
        return None
    history.estimate = True
    return -(-chars // 4)


def _count(state: ChatState, event: MessageAdded, tokens: int, context: Context) -> None:
    history = state.history
    state.meter.added += tokens
    if history.value is not None:
        history.value += tokens
    elif history.unknown_items == 0 and history.snapshot_seq is None:
        # Every item of this chat was seen and counted: their sum is the history.
        history.value = tokens + _earlier(history)
        history.source = "local" if event.tokens is None else "agent"
    if event.topic is not None and event.topic != history.topic:
        if history.topic is not None and history.current:
            history.topics = (history.topics or 0) + history.current
            history.current = 0
        history.topic = event.topic
    if event.kind == "summary":
        history.bulks = (history.bulks or 0) + tokens
    else:
        history.current = (history.current or 0) + tokens
    if tokens > history.biggest_new_tokens:
        history.biggest_new, history.biggest_new_tokens = event.name or event.id, tokens
    if tokens > history.heavy_floor:
        add_heavy(
            history,
            Heavy(
                tokens=tokens,
                id=event.id,
                kind=event.kind,
                role=event.role,
                name=event.name,
                excerpt=event.excerpt[:EXCERPT] if event.excerpt else None,
                seq=context.seq,
                in_context=True,
                estimate=event.tokens is None and not _is_exact(event),
            ),
        )


def _earlier(history: History) -> int:
    return (history.bulks or 0) + (history.topics or 0) + (history.current or 0)


def add_heavy(history: History, item: Heavy) -> None:
    """Keep the 20 heaviest; an id that is there already is replaced."""
    heavy = history.heavy
    for index, entry in enumerate(heavy):
        if entry.id == item.id:
            heavy[index] = item
            break
    else:
        if len(heavy) >= HEAVY_ITEMS:
            del heavy[min(range(len(heavy)), key=lambda index: heavy[index].tokens)]
        heavy.append(item)
    history.heaviest = max(history.heaviest, item.tokens)
    if len(heavy) >= HEAVY_ITEMS:
        history.heavy_floor = min(entry.tokens for entry in heavy)


def _pairs(history: History, event: MessageAdded, context: Context) -> None:
    for call in event.calls or ():
        history.calls_seen += 1
        if len(history.open_calls) >= OPEN_CALLS and call not in history.open_calls:
            history.calls_lost += 1
            del history.open_calls[next(iter(history.open_calls))]
        history.open_calls[call] = OpenCall(at=context.at, seq=context.seq, item=event.id)
    for call in event.answers or ():
        found = history.open_calls.pop(call, None)
        if found is None:
            _orphan_result(history, call)
            continue
        if call in history.orphan_calls:
            history.orphan_calls.remove(call)
        if len(history.pairs) >= RECENT_PAIRS:
            del history.pairs[: RECENT_PAIRS // 4]
        history.pairs.append(Pair(call=call, call_item=found.item, result_item=event.id))


def _orphan_result(history: History, call: str) -> None:
    if any(pair.call == call for pair in history.pairs[-8:]):
        return  # A second result of one call: a replayed line, not an orphan.
    if history.calls_seen == 0 or history.calls_lost:
        # The record starts in the middle, or the call is older than what is remembered.
        history.orphan_start = True
    elif call not in history.orphan_results and len(history.orphan_results) < 8:
        history.orphan_results.append(call)


def on_history_snapshot(state: ChatState, event: HistorySnapshot, context: Context) -> None:
    """The agent's own structure replaces ours; a large one comes in parts of one revision."""
    history = state.history
    part = event.part or 1
    first = part == 1 or event.revision != history.revision
    _take_parts(history, event, first)
    history.revision = event.revision
    history.parts_seen = 1 if first else history.parts_seen + 1
    whole = history.parts_seen >= (event.parts or 1)
    if event.order is not None:
        _take_order(state, event, first, whole, context)
    if event.images is not None:
        history.images = event.images
    if event.request_bytes is not None:
        history.request_bytes = event.request_bytes
    if event.protected is not None:
        history.protected = event.protected
    history.snapshot_seq = context.seq
    history.estimate = False
    if event.history is not None:
        history.value, history.source = event.history, "agent"
    elif whole and (event.bulks or event.topics or event.current):
        history.value, history.source = _earlier(history), "agent"
    context.changes.facts = True


def _take_parts(history: History, event: HistorySnapshot, first: bool) -> None:
    for name in ("system", "tools", "extras"):
        value = getattr(event, name)
        if value is not None:
            setattr(history, name, value)
    bulks = _sum([bulk.tokens for bulk in event.bulks])
    topics = _sum([topic.tokens for topic in event.topics])
    if first:
        history.bulks, history.topics = bulks, topics
        history.current = 0
    else:
        history.bulks = (history.bulks or 0) + (bulks or 0)
        history.topics = (history.topics or 0) + (topics or 0)
    if event.current is not None and event.current.tokens is not None:
        history.current = event.current.tokens
    if event.topics:
        history.topic = None


def _sum(values: list[int | None]) -> int | None:
    """The sum; unknown when nothing is known, 0 for an empty list."""
    known = [value for value in values if value is not None]
    return sum(known) if known or not values else None


def _take_order(
    state: ChatState, event: HistorySnapshot, first: bool, whole: bool, context: Context
) -> None:
    history = state.history
    history.membership = True
    changes = context.changes
    if first:
        changes.items.append(ItemChange("clear", "", context.seq, context.at))
        history.snapshot_calls, history.snapshot_orphans = {}, []
        for heavy in history.heavy:
            heavy.in_context = False
    heavy_by_id = {heavy.id: heavy for heavy in history.heavy}
    for item in event.order or ():
        changes.items.append(
            ItemChange(
                "add",
                item.id,
                context.seq,
                context.at,
                item.role,
                item.kind,
                item.tokens,
                item.in_ or "current",
                None,
                item.name,
                None,
                item.calls,
                item.answers,
                item.read,
            )
        )
        _weigh(history, heavy_by_id.get(item.id), item, context.seq)
        _follow_pair(history, item.id, item.calls, item.answers)
    watch_order(history, event.order or [], first, whole)
    if whole:
        _settle_pairs(history)
    if first and whole and history.open_calls:
        _settle_absent(history, event.order or [])


def _weigh(history: History, known: Heavy | None, item: SnapshotItem, seq: int) -> None:
    """Keep a member of the order among the heaviest, and mark it as in the context."""
    if known is not None:
        known.in_context = True
    elif item.tokens is not None and item.tokens > history.heavy_floor:
        heavy = Heavy(tokens=item.tokens, id=item.id, kind=item.kind, role=item.role)
        heavy.name, heavy.seq, heavy.in_context = item.name, seq, True
        add_heavy(history, heavy)


def _follow_pair(
    history: History, item: str, calls: list[str] | None, answers: list[str] | None
) -> None:
    for call in calls or ():
        if len(history.snapshot_calls) < OPEN_CALLS:
            history.snapshot_calls[call] = item
    for call in answers or ():
        if history.snapshot_calls.pop(call, None) is None and len(history.snapshot_orphans) < 8:
            history.snapshot_orphans.append(call)


def _settle_pairs(history: History) -> None:
    """The whole order was seen: results without a call are orphans, calls stay open."""
    history.orphan_results = history.snapshot_orphans
    history.orphan_calls = [call for call in history.orphan_calls if call in history.snapshot_calls]
    history.orphan_cut = history.orphan_cut and bool(history.orphan_results or history.orphan_calls)
    history.snapshot_calls, history.snapshot_orphans = {}, []


def _settle_absent(history: History, order: list[SnapshotItem]) -> None:
    """A call that the agent does not send needs no result."""
    members = {item.id for item in order}
    for opened in history.open_calls.values():
        opened.settled |= opened.item not in members


def remove_items(state: ChatState, removed: list[str], context: Context) -> None:
    """Items left the context: their pairs must have left together."""
    history = state.history
    history.membership = True
    gone = set(removed)
    watch_removed(state, gone)
    for item in removed:
        context.changes.items.append(ItemChange("remove", item, context.seq, context.at))
    for heavy in history.heavy:
        if heavy.id in gone:
            heavy.in_context = False
    kept: list[Pair] = []
    for pair in history.pairs:
        call_gone, result_gone = pair.call_item in gone, pair.result_item in gone
        if not call_gone and not result_gone:
            kept.append(pair)
        elif call_gone != result_gone:
            orphans = history.orphan_results if call_gone else history.orphan_calls
            if pair.call not in orphans and len(orphans) < 8:
                orphans.append(pair.call)
            history.orphan_cut = True
    history.pairs = kept
    for call, found in list(history.open_calls.items()):
        if found.item in gone:
            del history.open_calls[call]
