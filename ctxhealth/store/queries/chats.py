"""One chat: its row, its state at any moment, and what was judged of it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db.models import F

from ctxhealth.core.model import (
    AttemptView,
    ChatDetail,
    ChatSummary,
    FindingView,
    LatchView,
    ReadingPoint,
    Source,
    Structure,
)
from ctxhealth.core.state import ChatState, decode_state, encode_state
from ctxhealth.core.structure import structure_from_snapshot
from ctxhealth.core.view import detail
from ctxhealth.store.judging import rules_of
from ctxhealth.store.models import (
    Chat,
    CompactionAttempt,
    Finding,
    Latch,
    Reading,
)
from ctxhealth.store.queries.board import BoardRow, decode_summary
from ctxhealth.store.queries.items import snapshot_parts
from ctxhealth.store.replay import advance, replay

CACHED_STATES = 200
MAX_ROWS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatRow:
    """A chat with its agent as they stand in the database."""

    id: int
    project: int
    agent_id: int
    agent: str
    runtime: str
    agent_connected: bool
    agent_read_only: bool
    external_id: str
    chat_seq: int
    version: int
    opened_at: int
    last_event_at: int | None
    closed: bool
    parent: int | None
    parent_external: str
    commands: tuple[str, ...]
    fallback: str
    summary: ChatSummary


def chat_get(chat_id: int) -> ChatRow | None:
    chat = Chat.objects.select_related("agent").filter(id=chat_id).first()
    return _chat_row(chat) if chat else None


def chat_find(agent: str, external_id: str) -> ChatRow | None:
    """The chat that this agent calls ``external_id``."""
    chat = (
        Chat.objects.select_related("agent")
        .filter(agent__name=agent, external_id=external_id)
        .first()
    )
    return _chat_row(chat) if chat else None


def chat_children(chat_id: int) -> list[BoardRow]:
    """Sub-agents' chats, oldest first."""
    chats = Chat.objects.select_related("agent").filter(parent_id=chat_id).order_by("id")
    return [
        BoardRow(
            id=chat.id,
            agent=chat.agent.name,
            runtime=chat.agent.runtime,
            external_id=chat.external_id,
            version=chat.version,
            summary=decode_summary(chat.summary),
        )
        for chat in chats[:MAX_ROWS]
    ]


def chat_state(chat_id: int, at: int | None = None) -> ChatState | None:
    """A copy of the folded state, as of event ``at`` or now."""
    chat = Chat.objects.filter(id=chat_id).first()
    if chat is None:
        return None
    if at is not None:
        return _replayed(chat, max(0, min(at, chat.chat_seq)))
    with _READ_STATES.lock:
        return decode_state(encode_state(_READ_STATES.current(chat)))


def chat_detail(chat_id: int, at: int | None = None) -> ChatDetail | None:
    """The chat as its page shows it, as of event ``at`` or now."""
    chat = Chat.objects.filter(id=chat_id).first()
    if chat is None:
        return None
    rules = rules_of(chat.project_id, chat.agent_id)
    if at is not None:
        upto = max(0, min(at, chat.chat_seq))
        return detail(_replayed(chat, upto), rules, chat_structure(chat_id, upto))
    with _READ_STATES.lock:
        state = _READ_STATES.current(chat)
        return detail(state, rules, chat_structure(chat_id, chat.chat_seq))


def chats_due(now: int) -> int:
    """How many chats have a deadline that passed."""
    return Chat.objects.filter(deadline__lte=now).count()


def chat_structure(chat_id: int, upto: int) -> Structure | None:
    """The newest whole snapshot at or before event ``upto``; None where there was none."""
    parts = snapshot_parts(chat_id, upto)
    return structure_from_snapshot(parts) if parts else None


def chat_readings(chat_id: int, points: int = 600) -> list[ReadingPoint]:
    """The load series, oldest first, thinned to about ``points``: each bucket keeps its extremes
    and its last point, so that no peak and no fall is lost."""
    rows = Reading.objects.filter(chat_id=chat_id)
    slim = list(rows.order_by("chat_seq").values_list("id", "load"))
    keep = thinned(slim, max(3, points))
    chosen = rows.order_by("chat_seq").values_list(*READING_COLUMNS)
    if len(keep) < len(slim):
        return [point_of(row) for row in chosen.iterator(2_000) if row[-1] in keep]
    return [point_of(row) for row in chosen]


def chat_attempts(chat_id: int, limit: int = 200) -> list[AttemptView]:
    """Compaction attempts, newest first."""
    rows = CompactionAttempt.objects.filter(chat_id=chat_id).order_by("-first_seq")
    return [ATTEMPT.decode(view) for view in rows.values_list("view", flat=True)[:limit]]


def chat_attempt(chat_id: int, first_seq: int) -> AttemptView | None:
    """The attempt that was first heard of by this event."""
    rows = CompactionAttempt.objects.filter(chat_id=chat_id, first_seq=first_seq)
    view = rows.values_list("view", flat=True).first()
    return None if view is None else ATTEMPT.decode(view)


def chat_latches(chat_id: int, limit: int = 200) -> list[LatchView]:
    """Latches, open ones first, then newest first."""
    rows = Latch.objects.filter(chat_id=chat_id).order_by(
        F("cleared_at").asc(nulls_first=True), "-set_seq"
    )
    views = [LATCH.decode(view) for view in rows.values_list("view", flat=True)[:limit]]
    return sorted(views, key=lambda view: (view.cleared_at is not None, -view.set_seq))


def chat_findings(chat_id: int, limit: int = 200) -> list[FindingView]:
    """Findings, open ones first, then newest first."""
    rows = Finding.objects.filter(chat_id=chat_id).order_by(
        F("closed_at").asc(nulls_first=True), "-since_seq"
    )
    views = [FINDING.decode(view) for view in rows.values_list("view", flat=True)[:limit]]
    return sorted(views, key=lambda view: (view.closed_at is not None, -view.since_seq))


ATTEMPT: msgspec.json.Decoder[AttemptView] = msgspec.json.Decoder(AttemptView)
LATCH: msgspec.json.Decoder[LatchView] = msgspec.json.Decoder(LatchView)
FINDING: msgspec.json.Decoder[FindingView] = msgspec.json.Decoder(FindingView)
READING_COLUMNS = (
    "chat_seq", "at", "load", "source", "window", "budget", "trigger", "history", "local", "id",
)  # fmt: skip


def _chat_row(chat: Chat) -> ChatRow:
    agent = chat.agent
    caps = msgspec.json.decode(agent.caps)
    return ChatRow(
        id=chat.id,
        project=chat.project_id,
        agent_id=agent.id,
        agent=agent.name,
        runtime=agent.runtime,
        agent_connected=agent.connected,
        agent_read_only=bool(caps.get("read_only", False)),
        external_id=chat.external_id,
        chat_seq=chat.chat_seq,
        version=chat.version,
        opened_at=chat.opened_at,
        last_event_at=chat.last_event_at,
        closed=chat.closed,
        parent=chat.parent_id,
        parent_external=chat.parent_external,
        commands=tuple(caps.get("commands", ())),
        fallback=str(caps.get("fallback", "none")),
        summary=decode_summary(chat.summary),
    )


def _replayed(chat: Chat, upto: int) -> ChatState:
    return replay(
        chat=chat.id,
        external_id=chat.external_id,
        opened_at=chat.opened_at,
        rules=rules_of(chat.project_id, chat.agent_id),
        upto=upto,
    ).state


class _ReadStates:
    """States that pages look at, carried on event by event instead of rebuilt each time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._states: OrderedDict[tuple[str, int], tuple[ChatState, int]] = OrderedDict()

    def current(self, chat: Chat) -> ChatState:
        """The state now; call it, and use what it gives, under ``lock``."""
        key = (f"{chat.agent_id}/{chat.external_id}/{chat.opened_at}", chat.id)
        known = self._states.pop(key, None)
        if known is None or known[1] > chat.chat_seq:
            state, seq = _replayed(chat, chat.chat_seq), chat.chat_seq
        else:
            rules = rules_of(chat.project_id, chat.agent_id)
            state, seq, _ = advance(
                known[0], chat=chat.id, after=known[1], rules=rules, upto=chat.chat_seq
            )
        self._states[key] = (state, seq)
        if len(self._states) > CACHED_STATES:
            self._states.popitem(last=False)
        return state


_READ_STATES = _ReadStates()


def thinned(rows: list[tuple[int, int | None]], points: int) -> set[int]:
    """Keys of (key, load) rows that stand for all of them: extremes and last of each bucket."""
    if len(rows) <= points:
        return {pk for pk, _ in rows}
    buckets = max(1, points // 3)
    size = -(-len(rows) // buckets)
    keep: set[int] = set()
    for start in range(0, len(rows), size):
        bucket = rows[start : start + size]
        known = [row for row in bucket if row[1] is not None]
        keep.add(bucket[-1][0])
        if known:
            keep.add(min(known, key=lambda row: row[1] or 0)[0])
            keep.add(max(known, key=lambda row: row[1] or 0)[0])
    return keep


def point_of(row: tuple[Any, ...]) -> ReadingPoint:
    seq, at, load, source, window, budget, trigger, history, local, _ = row
    return ReadingPoint(
        chat_seq=seq,
        at=at,
        load=load,
        source=Source(source),
        window=window,
        budget=budget,
        trigger=trigger,
        history=history,
        local=local,
    )
