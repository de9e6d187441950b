"""One transaction's worth of work: events in, folded states and rows out, all or nothing.

A ``Unit`` is made inside a transaction, fed with submissions and calls in their order, and
finished just before the commit. If the transaction fails, ``abandon`` forgets every state that
was folded in it; the next use reads it from the database again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ctxhealth.core.changes import Changes
from ctxhealth.core.fold import Stamp, fold
from ctxhealth.core.model import ChatSummary
from ctxhealth.core.rules import Rules
from ctxhealth.core.view import summary
from ctxhealth.store import chat_rows, event_rows, projections
from ctxhealth.store.counted import same_content
from ctxhealth.store.intake import Intake, Receipt, StreamHandle, kind_of, server_body
from ctxhealth.store.judging import rules_of
from ctxhealth.store.states import Held, StateCache
from ctxhealth.wire import Event
from ctxhealth.wire.events import CommandProgress, Gap, Note, ServerConnected

MakeEvent = Callable[[int, str], Event]
Touched = tuple[Held, Changes, Rules]
# Kinds of events of which something is counted or told elsewhere; so are rejected ones.
_COUNTED = frozenset({"gap", "command.progress"})
# In place of a connection's number: the chat is reported by HTTP.
POSTED = 2**62
MOST_LOST = 2**53 - 1
_LOCAL = threading.local()


class ChatChange(NamedTuple):
    """A chat as it stands after a commit."""

    chat: int
    version: int
    summary: ChatSummary
    agent: str
    external_id: str
    chat_seq: int


class CommandChange(NamedTuple):
    command: str
    agent: int
    chat: int | None
    state: str


class Committed(NamedTuple):
    """What hooks are told after the commit."""

    chats: list[ChatChange]
    commands: list[CommandChange]
    revoked: list[int]


class Progress(NamedTuple):
    """A step of a command as its agent reports it."""

    agent: int
    event: CommandProgress
    at: int


class Unit:
    """``now`` is the server's time of everything in it, in ms.

    ``alone``: nobody but this writer has written since its last commit, so that states in memory
    are as new as their rows. What writes a chat's head past its state must drop the state.
    """

    def __init__(self, states: StateCache, now: int, *, alone: bool = False) -> None:
        self.now = now
        self.alone = alone
        self.states = states
        self.changes: dict[int, Touched] = {}
        self.command_changes: list[CommandChange] = []
        self.progress: list[Progress] = []
        self.stored = 0
        self.appended = 0
        self.revoked: list[int] = []
        self.heads = event_rows.Heads()
        self._heads: dict[tuple[int, str], chat_rows.Head] = {}
        self._rows = event_rows.EventRows()
        self._odd: list[Intake] = []
        # The same as in ``changes``, by agent and by the agent's own name of the chat.
        self._touched: dict[int, dict[str, Touched]] = {}

    # Submissions of agents.

    def prepare(self, submissions: Iterable[tuple[StreamHandle, list[Intake]]]) -> None:
        """Read in a few statements what these submissions will touch."""
        wanted: dict[int, set[str | None]] = {}
        streams = set()
        for stream, intakes in submissions:
            streams.add(stream.stream)
            names = wanted.get(stream.agent)
            if names is None:
                names = wanted[stream.agent] = set()
            for intake in intakes:
                names.add(intake.event.chat)
        self.heads.read(streams)
        known: list[int] = []
        for agent, found in wanted.items():
            missing = []
            for name in found:
                pk = self.states.pk_of(agent, name) if name is not None else None
                if pk is not None:
                    if not self.alone:
                        known.append(pk)
                elif name is not None:
                    missing.append(name)
            if missing:
                self._found(chat_rows.heads_by_name(agent, missing))
        if known:
            self._found(chat_rows.heads_by_pk(known))

    def _found(self, heads: Iterable[chat_rows.Head]) -> None:
        for head in heads:
            self._heads[(head.agent, head.external_id)] = head

    def submit(self, stream: StreamHandle, conn_no: int | None, intakes: list[Intake]) -> Receipt:
        """Store what is new of ``intakes``; ``conn_no`` None writes without a connection."""
        head, newest = self.heads.of(stream.stream)
        if conn_no is not None and conn_no != newest:
            return Receipt(upto=head, before=head, replaced=True)
        before, resend = head, None
        seen: list[Intake] = []
        fresh: list[Intake] = []
        for intake in intakes:
            if intake.seq == head + 1:
                head += 1
                fresh.append(intake)
            elif intake.seq <= head:
                seen.append(intake)
            else:
                resend = head + 1
                break
        if fresh:
            self._store(stream, conn_no, fresh)
            self.heads.advance(stream.stream, head)
        if not seen and not self._odd:
            return Receipt(head, before, len(fresh), resend=resend)
        odd, self._odd = self._odd, []
        conflicting = self._conflicts(stream, seen) if seen else ()
        rejected = tuple(intake.rejected for intake in odd if intake.rejected)
        event_rows.agent_counters(
            stream.agent,
            duplicates=len(seen),
            conflicts=len(conflicting),
            rejects=len(rejected),
            gaps=sum(intake.event.count for intake in odd if isinstance(intake.event, Gap)),
        )
        return Receipt(head, before, len(fresh), len(seen), conflicting, rejected, resend)

    def _store(self, stream: StreamHandle, conn_no: int | None, fresh: list[Intake]) -> None:
        """In order; ``_odd`` collects the rare ones that somebody counts."""
        now, key = self.now, stream.stream
        touched = self._touched.setdefault(stream.agent, {})
        told = False
        for intake in fresh:
            event, kind = intake.event, intake.kind
            rejected = intake.rejected is not None
            if rejected or kind in _COUNTED:
                self._count(stream, intake)
                if not told and not stream.read_only and _lost_anywhere(intake):
                    told = True
                    self._spread_gap(stream, fresh)
            name = event.chat
            at = event.ts if stream.read_only else now
            pk = chat_seq = None
            if name is not None:
                found = touched.get(name)
                if found is None:
                    held = self._held_of(stream, name, at)
                    found = touched[name] = self._touch(held)
                held, changes, rules = found
                if conn_no is None:
                    if held.conn_no <= 0 and not stream.read_only:
                        self._posted(held, stream, at)
                elif held.conn_no != conn_no:
                    self._connected(held, stream, conn_no, at)
                pk, chat_seq = held.pk, held.chat_seq + 1
                held.chat_seq = chat_seq
                held.unsaved += 1
                fold(held.state, event, Stamp(chat_seq, at), changes, rules)
            self._rows.values.extend(
                (pk, chat_seq, key, intake.seq, kind, event.ts, now, at, intake.body, rejected)
            )
        self.stored += len(fresh)

    def _count(self, stream: StreamHandle, intake: Intake) -> None:
        event = intake.event
        if isinstance(event, CommandProgress):
            self.progress.append(Progress(stream.agent, event, self.now))
        else:
            self._odd.append(intake)

    def _spread_gap(self, stream: StreamHandle, fresh: list[Intake]) -> None:
        """What an agent dropped without saying of which chat may be missing in any of them."""
        lost = [intake.event for intake in fresh if _lost_anywhere(intake)]
        count = min(sum(event.count for event in lost if isinstance(event, Gap)), MOST_LOST)
        reason = next((event.reason for event in lost if isinstance(event, Gap)), "")
        text = f"{reason}; of this agent's chats it is not said which"[:200]
        for chat in chat_rows.going_on(stream.agent, self.now):
            self.append(
                chat,
                lambda seq, name: Gap(seq=seq, ts=self.now, chat=name, count=count, reason=text),
            )

    def _connected(self, held: Held, stream: StreamHandle, conn_no: int, at: int) -> None:
        held.conn_no = conn_no
        self._append(
            held,
            ServerConnected(
                seq=held.chat_seq + 1,
                ts=self.now,
                chat=held.external_id,
                conn_no=conn_no,
                read_only=stream.read_only,
                commands=list(stream.commands),
                skew_ms=stream.skew_ms,
                epoch=stream.epoch or None,
            ),
            at,
        )

    def _posted(self, held: Held, stream: StreamHandle, at: int) -> None:
        """The first event by HTTP of a chat that no connection speaks for now."""
        held.conn_no = POSTED
        epoch = stream.epoch or None
        event = ServerConnected(
            seq=held.chat_seq + 1, ts=self.now, chat=held.external_id, posts=True, epoch=epoch
        )
        self._append(held, event, at)

    def _conflicts(self, stream: StreamHandle, seen: list[Intake]) -> tuple[int, ...]:
        """Duplicates are success; one with other content is told in its chat, the first stays."""
        self.flush_events()
        stored = event_rows.stored_bodies(stream.stream, [intake.seq for intake in seen])
        conflicting = []
        for intake in seen:
            body = stored.get(intake.seq)
            if body is None or same_content(body, intake.body):
                continue
            conflicting.append(intake.seq)
            chat = intake.event.chat
            if chat is not None:
                self._note_conflict(self._held_of(stream, chat, self.now), intake)
        return tuple(conflicting)

    def _note_conflict(self, held: Held, intake: Intake) -> None:
        text = f"event {intake.seq} ({intake.kind}) came again with other content; the first stays"
        note = Note(
            seq=held.chat_seq + 1,
            ts=self.now,
            chat=held.external_id,
            level="warning",
            code="conflict",
            text=text,
        )
        self._append(held, note, self.now)

    # The server's own events.

    def append(self, chat: int, make: MakeEvent, at: int | None = None) -> int | None:
        """Append a server event to a chat's log; its chat_seq, or None where no such chat is."""
        held = self.held(chat)
        if held is None:
            return None
        self._append(held, make(held.chat_seq + 1, held.external_id), at or self.now)
        return held.chat_seq

    def heard_of(self, chat: int, conn_no: int) -> None:
        """Note which connection the chat's log last spoke of; negative: of its end."""
        touched = self.changes.get(chat)
        if touched is not None:
            touched[0].conn_no = conn_no

    def _append(self, held: Held, event: Event, at: int) -> None:
        self.appended += 1
        _, changes, rules = self._touch(held)
        held.chat_seq += 1
        held.unsaved += 1
        fold(held.state, event, Stamp(held.chat_seq, at), changes, rules)
        self._rows.values.extend(
            (held.pk, held.chat_seq, None, None, kind_of(event), event.ts, self.now, at,
             server_body(event), False)
        )  # fmt: skip

    # States.

    def held(self, chat: int) -> Held | None:
        """The chat's state, from memory where memory is not older than the database."""
        touched = self.changes.get(chat)
        if touched:
            return touched[0]
        heads = chat_rows.heads_by_pk([chat])
        return chat_rows.hold(self.states, heads[0]) if heads else None

    def _held_of(self, stream: StreamHandle, external_id: str, at: int) -> Held:
        pk = self.states.pk_of(stream.agent, external_id)
        if pk is not None and pk in self.changes:
            return self.changes[pk][0]
        if pk is not None and self.alone:
            held = self.states.get(pk)
            if held is not None:
                return held
        key = (stream.agent, external_id)
        if key not in self._heads:
            self._found(chat_rows.heads_by_name(stream.agent, [external_id]))
        head = self._heads.get(key)
        if head is None:
            return chat_rows.create(self.states, stream, external_id, at)
        return chat_rows.hold(self.states, head)

    def _touch(self, held: Held) -> Touched:
        touched = self.changes.get(held.pk)
        if touched is None:
            rules = rules_of(held.project, held.agent)
            touched = self.changes[held.pk] = (held, Changes(), rules)
        return touched

    # The end.

    def flush_events(self) -> None:
        """Insert what waits, so that reads in this transaction see it."""
        self._rows.flush()

    def finish(self) -> Committed:
        """Write everything that is left; call just before the commit."""
        from ctxhealth.store.writes.delivery import command_progress

        for step in self.progress:
            command_progress(self, step)
        self.progress = []
        self.flush_events()
        self.heads.write(self.now)
        projections.write([(held, changes) for held, changes, _ in self.changes.values()])
        published = []
        for held, _, rules in self.changes.values():
            held.version += 1
            published.append(_published(held, rules))
        chat_rows.save([(held, change.summary) for held, change in published])
        chat_rows.checkpoint(self.changes_due())
        return Committed([change for _, change in published], self.command_changes, self.revoked)

    def changes_due(self) -> Iterable[Held]:
        """Touched states that went long enough without a checkpoint."""
        return [h for h, *_ in self.changes.values() if h.unsaved >= chat_rows.CHECKPOINT_EVERY]

    def abandon(self) -> None:
        """The transaction failed: forget what was folded in it."""
        for pk in self.changes:
            self.states.drop(pk)


def _lost_anywhere(intake: Intake) -> bool:
    """Whether the agent dropped something without saying of which chat."""
    event = intake.event
    return isinstance(event, Gap) and event.chat is None and intake.rejected is None


def _published(held: Held, rules: Rules) -> tuple[Held, ChatChange]:
    shown = summary(held.state, rules)
    change = ChatChange(
        held.pk, held.version, shown, held.agent_name, held.external_id, held.chat_seq
    )
    return held, change


def current() -> Unit | None:
    """The unit of the transaction that this thread is in."""
    return getattr(_LOCAL, "unit", None)


def enter(unit: Unit | None) -> None:
    """Make ``unit`` this thread's current one; None when its transaction ended."""
    _LOCAL.unit = unit
