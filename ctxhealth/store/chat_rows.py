"""Chat rows and checkpoints, between the database and the states in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from django.db import connection

from ctxhealth.core.deadlines import next_deadline
from ctxhealth.core.model import ChatSummary, Severity
from ctxhealth.core.state import FOLD_VERSION, ChatState, encode_state, new_state
from ctxhealth.store.event_rows import chunks, marks
from ctxhealth.store.intake import StreamHandle
from ctxhealth.store.judging import rules_of
from ctxhealth.store.models import Chat, Checkpoint
from ctxhealth.store.replay import replay
from ctxhealth.store.states import Held, StateCache

CHECKPOINT_EVERY = 256
ACTIVE_MS = 24 * 3_600_000
ACTIVE_CHATS = 100
SEVERITY_RANK = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2, None: 3}
Row = tuple[int | str | bool | None, ...]
_ENCODER = msgspec.json.Encoder()
# Columns that most commits change, then those that few do; indexes stand on the latter.
_OFTEN = (
    "chat_seq", "version", "conn_no", "summary", "headroom_trigger", "load_share", "last_event_at",
)  # fmt: skip
_SELDOM = (
    "fold_version", "state", "severity_rank", "compacted_at", "waiting_since", "model", "title",
    "last_outcome", "latched", "deadline", "connection", "closed",
)  # fmt: skip
COLUMNS = _OFTEN + _SELDOM
_CHECKPOINT = (
    "INSERT INTO store_checkpoint (chat_id, chat_seq, fold_version, state)"
    " VALUES (%s, %s, %s, %s) ON CONFLICT (chat_id, chat_seq)"
    " DO UPDATE SET fold_version = excluded.fold_version, state = excluded.state"
)
_HEAD = (
    "SELECT c.id, c.project_id, c.agent_id, c.external_id, c.chat_seq, c.version, c.conn_no,"
    " c.opened_at, a.name FROM store_chat c JOIN store_agent a ON a.id = c.agent_id WHERE "
)


class Head(NamedTuple):
    """What a chat's row says of its log."""

    pk: int
    project: int
    agent: int
    external_id: str
    chat_seq: int
    version: int
    conn_no: int
    opened_at: int
    agent_name: str


def heads_by_pk(pks: Sequence[int]) -> list[Head]:
    found: list[Head] = []
    with connection.cursor() as cursor:
        for some in chunks(pks):
            cursor.execute(f"{_HEAD} c.id IN ({marks(some)})", list(some))
            found.extend(Head(*row) for row in cursor.fetchall())
    return found


def heads_by_name(agent: int, names: Sequence[str]) -> list[Head]:
    found: list[Head] = []
    with connection.cursor() as cursor:
        for some in chunks(names):
            cursor.execute(
                f"{_HEAD} c.agent_id = %s AND c.external_id IN ({marks(some)})", [agent, *some]
            )
            found.extend(Head(*row) for row in cursor.fetchall())
    return found


def hold(states: StateCache, head: Head) -> Held:
    """The chat's state in memory, rebuilt where memory has none or another one than the log."""
    known = states.get(head.pk)
    if known is not None and known.chat_seq == head.chat_seq:
        known.version, known.conn_no = head.version, head.conn_no
        return known
    rebuilt = replay(
        chat=head.pk,
        external_id=head.external_id,
        opened_at=head.opened_at,
        rules=rules_of(head.project, head.agent),
    )
    held = Held(
        pk=head.pk,
        project=head.project,
        agent=head.agent,
        external_id=head.external_id,
        chat_seq=rebuilt.chat_seq,
        version=head.version,
        conn_no=head.conn_no,
        state=rebuilt.state,
        unsaved=rebuilt.folded,
        agent_name=head.agent_name,
    )
    states.put(held)
    return held


def create(states: StateCache, stream: StreamHandle, external_id: str, at: int) -> Held:
    """A chat's row, before its first event; its children that came earlier find it."""
    chat = Chat.objects.create(
        project_id=stream.project,
        agent_id=stream.agent,
        external_id=external_id,
        opened_at=at,
        summary="{}",
        state="healthy",
        connection="imported",
    )
    waiting = Chat.objects.filter(agent_id=stream.agent, parent_external=external_id, parent=None)
    waiting.exclude(pk=chat.pk).update(parent=chat)
    held = Held(
        pk=chat.pk,
        project=stream.project,
        agent=stream.agent,
        external_id=external_id,
        chat_seq=0,
        version=0,
        conn_no=0,
        state=new_state(external_id, at),
        agent_name=stream.agent_name,
    )
    states.put(held)
    return held


def going_on(agent: int, now: int) -> list[int]:
    """The agent's chats that had an event in the last day, newest first, a bounded number."""
    rows = Chat.objects.filter(agent_id=agent, closed=False, last_event_at__gte=now - ACTIVE_MS)
    return list(rows.order_by("-last_event_at", "id").values_list("id", flat=True)[:ACTIVE_CHATS])


def link_parent(held: Held, parent: str) -> None:
    """Hang the chat under its parent, now or when the parent appears."""
    if parent == held.external_id:
        return
    above = Chat.objects.filter(agent_id=held.agent, external_id=parent).first()
    Chat.objects.filter(pk=held.pk).update(parent_external=parent, parent=above)


def save(chats: Iterable[tuple[Held, ChatSummary]]) -> None:
    """Write the projections that the board reads; of each only what changed."""
    few: list[Row] = []
    all_of: list[Row] = []
    for held, shown in chats:
        row = row_of(held, shown)
        seldom = row[len(_OFTEN) :]
        if seldom == held.saved:
            few.append((*row[: len(_OFTEN)], held.pk))
        else:
            held.saved = seldom
            all_of.append((*row, held.pk))
    _update(_OFTEN, few)
    _update(COLUMNS, all_of)


def _update(columns: Sequence[str], rows: list[Row]) -> None:
    if rows:
        wanted = ", ".join(f"{name} = %s" for name in columns)
        with connection.cursor() as cursor:
            cursor.executemany(f"UPDATE store_chat SET {wanted} WHERE id = %s", rows)


def row_of(held: Held, shown: ChatSummary) -> Row:
    """The chat's columns in the order of ``COLUMNS``."""
    last = shown.last_compaction
    return (
        held.chat_seq,
        held.version,
        held.conn_no,
        _ENCODER.encode(shown).decode(),
        shown.headroom.trigger,
        load_share(shown),
        shown.last_event_at,
        FOLD_VERSION,
        shown.state.value,
        SEVERITY_RANK[shown.severity],
        (last.at or None) if last else None,
        shown.waiting_since,
        (shown.model or "")[:200],
        (shown.title or "")[:400],
        last.outcome.value if last else "",
        bool(shown.latches),
        next_deadline(held.state, rules_of(held.project, held.agent)),
        shown.connection.value,
        closed(held.state),
    )


def load_share(shown: ChatSummary) -> int | None:
    """Millionths of the budget that the load takes; None where either is not known."""
    if shown.load.value is None or not shown.budget or shown.budget < 0:
        return None
    return 1_000_000 * shown.load.value // shown.budget


def closed(state: ChatState) -> bool:
    return state.link.closed


def checkpoint(helds: Iterable[Held]) -> int:
    """Store these states as of their last event; how many were stored."""
    due = [held for held in helds if held.unsaved]
    rows = [(h.pk, h.chat_seq, FOLD_VERSION, encode_state(h.state)) for h in due]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_CHECKPOINT, rows)
    for held in due:
        held.unsaved = 0
    return len(rows)


def drop_checkpoints(chat: int) -> None:
    Checkpoint.objects.filter(chat_id=chat).delete()
