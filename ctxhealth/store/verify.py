"""Fold of the log = projections = board, or where not.

Every chat is folded again from its first event and compared with what is stored: columns and
summary of its row, attempts, latches, findings, items, readings, checkpoints. Streams must be
whole: as many events as their head says. ``repair`` writes the rebuilt projections in place of
the stored ones; the log itself is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.db.models import Count, Min

from ctxhealth.core.changes import Changes
from ctxhealth.core.fold import Stamp, fold
from ctxhealth.core.incidents_model import IncidentView
from ctxhealth.core.state import FOLD_VERSION, ChatState, encode_state, new_state
from ctxhealth.core.view import summary
from ctxhealth.store import (
    chat_rows,
    incident_checks,
    incident_rows,
    mirror,
    projections,
    replay,
    unit,
)
from ctxhealth.store.judging import rules_of
from ctxhealth.store.models import (
    Chat,
    Checkpoint,
    CompactionAttempt,
    Event,
    Finding,
    Item,
    Latch,
    Reading,
    Stream,
)
from ctxhealth.store.states import Held
from ctxhealth.store.through import call
from ctxhealth.wire import decode_stored

CHUNK = 200
TRIES = 5


class Problem(NamedTuple):
    """``where``: ``chat 5``, ``stream 2``; ``what`` says the difference in words."""

    where: str
    what: str


class Report(NamedTuple):
    chats: int
    events: int
    problems: list[Problem]
    repaired: int

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(*, chat: int | None = None, repair: bool = False) -> Report:
    """Check one chat, or everything; with ``repair`` rebuild what differs."""
    problems = [] if chat is not None else list(_stream_problems())
    rows = Chat.objects.order_by("id") if chat is None else Chat.objects.filter(id=chat)
    events = count = repaired = 0
    for pk in rows.values_list("id", flat=True).iterator(CHUNK):
        found, folded = chat_problems(pk)
        count += 1
        events += folded
        problems.extend(found)
        if found and repair:
            call(rebuild, pk)
            repaired += 1
    if chat is None:
        for group, what in incident_checks.group_problems():
            problems.append(Problem(f"cause group {group}", what))
            if repair:
                call(incident_checks.repair_group, group)
                repaired += 1
    return Report(count, events, problems, repaired)


def chat_problems(chat_id: int) -> tuple[list[Problem], int]:
    """What differs in one chat, and how many events were folded to know it.

    Beside a running server a chat may move on while it is read: then it is read again.
    """
    for _ in range(TRIES):
        chat = Chat.objects.get(id=chat_id)
        found = _problems_now(chat)
        if not found[0] or Chat.objects.get(id=chat_id).version == chat.version:
            break
    return found


def _problems_now(chat: Chat) -> tuple[list[Problem], int]:
    chat_id = chat.pk
    where = f"chat {chat_id}"
    try:
        rebuilt = _Rebuilt(chat)
    except replay.LogHole as hole:
        return [Problem(where, f"the log misses event {hole.expected}")], 0
    differences = [
        *_row_problems(chat, rebuilt),
        *rebuilt.tables.differences(chat_id),
        *incident_checks.incident_problems(chat_id, rebuilt.tables.incidents),
        *rebuilt.checkpoint_problems,
    ]
    return [Problem(where, text) for text in differences], rebuilt.seq


class _Rebuilt:
    """One chat folded from its first event, with the tables that this gives."""

    def __init__(self, chat: Chat) -> None:
        self.tables = mirror.Tables()
        self.checkpoint_problems: list[str] = []
        self.state = new_state(chat.external_id, chat.opened_at)
        self.seq = 0
        rules = rules_of(chat.project_id, chat.agent_id)
        checkpoints = _checkpoints(chat.pk)
        for seq, at, body in replay.log_of(chat.pk, 0, None):
            if seq != self.seq + 1:
                raise replay.LogHole(chat.pk, self.seq + 1, seq)
            self.seq = seq
            changes = Changes()
            fold(self.state, decode_stored(body), Stamp(seq, at), changes, rules)
            self.tables.apply(changes)
            if seq in checkpoints and checkpoints[seq] != encode_state(self.state):
                self.checkpoint_problems.append(f"the checkpoint at {seq} is another state")


def _checkpoints(chat: int) -> dict[int, bytes]:
    rows = Checkpoint.objects.filter(chat_id=chat, fold_version=FOLD_VERSION)
    return {seq: bytes(state) for seq, state in rows.values_list("chat_seq", "state")}


def _row_problems(chat: Chat, rebuilt: _Rebuilt) -> Iterator[str]:
    if chat.chat_seq != rebuilt.seq:
        yield f"chat_seq is {chat.chat_seq}, the log ends at {rebuilt.seq}"
        return
    held = _held(chat, rebuilt.state, rebuilt.seq)
    expected = chat_rows.row_of(
        held, summary(rebuilt.state, rules_of(chat.project_id, chat.agent_id))
    )
    for column, value in zip(chat_rows.COLUMNS, expected, strict=True):
        stored = getattr(chat, column)
        if stored != value:
            yield f"{column} is {_short(stored)}, the fold gives {_short(value)}"


def _held(chat: Chat, state: ChatState, seq: int) -> Held:
    return Held(
        pk=chat.pk,
        project=chat.project_id,
        agent=chat.agent_id,
        external_id=chat.external_id,
        chat_seq=seq,
        version=chat.version,
        conn_no=chat.conn_no,
        state=state,
        unsaved=1,
    )


def _stream_problems() -> Iterator[Problem]:
    for stream in Stream.objects.order_by("id").iterator(CHUNK):
        for _ in range(TRIES):
            what = _stream_problem(stream)
            if what is None:
                break
            before, stream = stream.head, Stream.objects.get(pk=stream.pk)
            if stream.head == before:
                yield Problem(f"stream {stream.pk}", what)
                break
    known = Stream.objects.values("id")
    orphans = Event.objects.filter(stream__isnull=False).exclude(stream__in=known)
    for stream_id in orphans.order_by().values_list("stream_id", flat=True).distinct():
        yield Problem(f"stream {stream_id}", "events of a stream that does not exist")


def _stream_problem(stream: Stream) -> str | None:
    """A stream is whole when its events are 1 to its head, but for those that retention deleted;
    newer ones come with a newer head."""
    rows = Event.objects.filter(stream=stream, seq__lte=stream.head)
    found = rows.aggregate(n=Count("id"), low=Min("seq"))
    beyond = Event.objects.filter(stream=stream, seq__gt=stream.head).exists()
    whole = found["n"] + stream.trimmed == stream.head
    if whole and (stream.trimmed or (found["low"] or 1) == 1) and not beyond:
        return None
    more = ", and some beyond it" if beyond else ""
    return f"head is {stream.head}, stored are {found['n']} events up to it{more}"


def rebuild(chat_id: int) -> None:
    """Write one chat's projections anew from its log. Raises LogHole."""
    chat = Chat.objects.get(id=chat_id)
    for table in (CompactionAttempt, Latch, Finding, Item, Reading, Checkpoint):
        table._default_manager.filter(chat_id=chat_id).delete()
    held = _held(chat, new_state(chat.external_id, chat.opened_at), 0)
    rules = rules_of(chat.project_id, chat.agent_id)
    incidents: dict[int, IncidentView] = {}
    for some in _chunks(replay.log_of(chat_id, 0, None), CHUNK):
        changes = Changes()
        for seq, at, body in some:
            if seq != held.chat_seq + 1:
                raise replay.LogHole(chat_id, held.chat_seq + 1, seq)
            held.chat_seq = seq
            fold(held.state, decode_stored(body), Stamp(seq, at), changes, rules)
        incidents.update(changes.incidents)
        projections.write([(held, changes)], incidents=False)
        held.unsaved += len(some)
        if held.unsaved >= chat_rows.CHECKPOINT_EVERY:
            # A review looks at any moment: none of them may be far from a stored state.
            chat_rows.checkpoint([held])
    incident_rows.reconcile(held, incidents)
    held.version += 1
    chat_rows.save([(held, summary(held.state, rules))])
    chat_rows.checkpoint([held])
    work = unit.current()
    if work is not None:
        work.states.drop(chat_id)


def _chunks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
