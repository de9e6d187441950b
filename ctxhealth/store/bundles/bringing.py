"""A bundle into this database: the log as it was, folded anew, the rest beside it.

In several short transactions, so that no agent waits for a large file. Nothing of it is a live
chat: its agent is marked imported, and events of this server close the log, so that nobody waits
for it, nothing is sent to it and what was open in it ended with it.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import msgspec

from ctxhealth.core.changes import Changes
from ctxhealth.core.fold import Stamp, fold
from ctxhealth.core.state import new_state
from ctxhealth.store import chat_rows, event_rows, incarnation, projections, unit
from ctxhealth.store.bundles import beside
from ctxhealth.store.bundles.checking import BadBundle, checked, events_of
from ctxhealth.store.bundles.form import Bundle, BundleEvent
from ctxhealth.store.clock import now_ms
from ctxhealth.store.judging import rules_of
from ctxhealth.store.models import Agent, Chat, Event, ImportedBundle, Incident, Stream
from ctxhealth.store.projects import default_project
from ctxhealth.store.replay import log_of, replay
from ctxhealth.store.states import Held
from ctxhealth.store.through import call
from ctxhealth.store.writes.audit import audit, name_of
from ctxhealth.wire import Event as WireEvent
from ctxhealth.wire.events import ServerConnected, ServerDisconnected, ServerTick

CHUNK = 500
REASON = "imported"
Line = tuple[BundleEvent, WireEvent, str]


class Brought(NamedTuple):
    """Where it landed. ``events`` are new, ``notes`` too; ``here``: it is this server's own."""

    chat: int
    incident: int
    events: int
    notes: int
    here: bool = False

    @property
    def new(self) -> bool:
        return bool(self.events or self.notes)


class _Place(NamedTuple):
    """The chat to go on with; ``have`` events of the bundle are stored already."""

    chat: int
    stream: int
    agent: int
    project: int
    agent_name: str
    have: int


def import_bundle(data: bytes, *, by: Any = None) -> Brought:
    """Bring a bundle in; the same one again changes nothing, a longer one goes on.

    ``by`` is a user, or a name. Raises BadBundle with one sentence; nothing was written then.
    """
    project = default_project().pk
    bundle = checked(data, rules_of(project, 0))
    own = _own(bundle)
    if own is not None:
        return own
    place = call(_begin, bundle, by)
    fresh = _write_log(bundle, place)
    brought: Brought = call(_finish, bundle, place, fresh, by)
    return brought


def _own(bundle: Bundle) -> Brought | None:
    """A bundle that was made here leads to what it was made of."""
    if bundle.origin.incarnation != incarnation.current():
        return None
    chat = Chat.objects.filter(id=bundle.origin.chat, external_id=bundle.chat.external_id).first()
    found = beside.incident_row(chat.pk, bundle.incident) if chat is not None else None
    if chat is None or found is None:
        return None
    return Brought(chat.pk, found.pk, 0, 0, here=True)


def _begin(bundle: Bundle, by: Any) -> _Place:
    known = ImportedBundle.objects.select_related("chat__agent").filter(
        project=default_project(), origin=bundle.origin.incarnation, origin_chat=bundle.origin.chat
    )
    found = known.first()
    if found is None:
        return _new(bundle, by)
    have = _have(bundle, found)
    agent = found.chat.agent
    stream = Stream.objects.get(agent=agent, epoch=_epoch(bundle))
    return _Place(found.chat_id, stream.pk, agent.pk, agent.project_id, agent.name, have)


def _new(bundle: Bundle, by: Any) -> _Place:
    project, now = default_project(), now_ms()
    agent = _agent(bundle, project, now)
    if Chat.objects.filter(agent=agent, external_id=bundle.chat.external_id).exists():
        raise BadBundle("its chat is here already, from a bundle of another origin")
    stream, _ = Stream.objects.get_or_create(
        agent=agent, epoch=_epoch(bundle), defaults={"created_at": now}
    )
    chat = Chat.objects.create(
        project=project,
        agent=agent,
        external_id=bundle.chat.external_id,
        opened_at=bundle.chat.opened_at,
        summary="{}",
        state="healthy",
        connection="imported",
    )
    ImportedBundle.objects.create(
        project=project,
        chat=chat,
        origin=bundle.origin.incarnation,
        origin_chat=bundle.origin.chat,
        origin_agent=bundle.chat.agent,
        exported_at=bundle.exported_at,
        exported_by=bundle.exported_by,
        imported_at=now,
        by=by if getattr(by, "pk", None) is not None else None,
        by_name=name_of(by),
    )
    return _Place(chat.pk, stream.pk, agent.pk, project.pk, agent.name, 0)


def _agent(bundle: Bundle, project: Any, now: int) -> Agent:
    """One for each agent of each origin: names of two servers may be the same."""
    caps = {"read_only": True, "commands": [], "fallback": "none", "text": bundle.chat.text}
    agent, _ = Agent.objects.get_or_create(
        project=project,
        name=f"{bundle.chat.agent} (from {bundle.origin.incarnation[-6:]})",
        defaults={
            "created_at": now,
            "runtime": bundle.chat.runtime,
            "caps": msgspec.json.encode(caps).decode(),
            "imported": True,
        },
    )
    if not agent.imported:
        raise BadBundle(f"an agent that reports here is called {agent.name!r}")
    return agent


def _epoch(bundle: Bundle) -> str:
    return f"bundle {bundle.origin.incarnation} {bundle.origin.chat}"[:200]


def _have(bundle: Bundle, found: ImportedBundle) -> int:
    """How many events of the bundle are stored; the same ones, or it is refused."""
    common = min(found.head or _stored(found.chat_id), len(bundle.events))
    stored = log_of(found.chat_id, 0, common)
    for (seq, at, body), (line, _, mine) in zip(stored, events_of(bundle), strict=False):
        if (seq, at, body) != (line.chat_seq, line.at, mine):
            raise BadBundle(f"event {seq} is another one than was imported before")
    if common < len(bundle.events):
        # The events that closed it here make room for those that came after.
        Event.objects.filter(chat_id=found.chat_id, chat_seq__gt=common).delete()
        chat_rows.drop_checkpoints(found.chat_id)
        Chat.objects.filter(id=found.chat_id).update(chat_seq=common, deadline=None)
        work = unit.current()
        if work is not None:
            work.states.drop(found.chat_id)
    return common


def _stored(chat: int) -> int:
    """Events of an import that did not come to its end."""
    return Event.objects.filter(chat_id=chat).count()


def _write_log(bundle: Bundle, place: _Place) -> int:
    """Append what is not stored yet, a bounded number at a time; how many."""
    if place.have >= len(bundle.events):
        return 0
    held = _held(bundle, place)
    lines = events_of(bundle, after=place.have)
    seq = _agent_events(place)
    while chunk := list(islice(lines, CHUNK)):
        seq = call(_append, held, place, chunk, seq)
    return len(bundle.events) - place.have


def _agent_events(place: _Place) -> int:
    """Of the import's own stream: its events are counted anew, so that it is whole."""
    return Event.objects.filter(stream_id=place.stream).count()


def _held(bundle: Bundle, place: _Place) -> Held:
    state = new_state(bundle.chat.external_id, bundle.chat.opened_at)
    if place.have:
        rules = rules_of(place.project, place.agent)
        state = replay(
            chat=place.chat,
            external_id=bundle.chat.external_id,
            opened_at=bundle.chat.opened_at,
            rules=rules,
            upto=place.have,
        ).state
    return Held(
        pk=place.chat,
        project=place.project,
        agent=place.agent,
        external_id=bundle.chat.external_id,
        chat_seq=place.have,
        version=0,
        conn_no=0,
        state=state,
        agent_name=place.agent_name,
    )


def _append(held: Held, place: _Place, chunk: list[Line], seq: int) -> int:
    """One transaction's worth of the log; the stream's head afterwards."""
    rows, changes = event_rows.EventRows(), Changes()
    rules = rules_of(place.project, place.agent)
    for line, event, body in chunk:
        seq += not line.by_server
        owner = (None, None) if line.by_server else (place.stream, seq)
        rows.values.extend((held.pk, line.chat_seq, *owner, line.type, line.ts, line.received,
                            line.at, body, line.tombstone))  # fmt: skip
        held.chat_seq = line.chat_seq
        held.unsaved += 1
        fold(held.state, event, Stamp(line.chat_seq, line.at), changes, rules)
    rows.flush()
    projections.write([(held, changes)])
    if held.unsaved >= chat_rows.CHECKPOINT_EVERY:
        chat_rows.checkpoint([held])
    Chat.objects.filter(id=held.pk).update(chat_seq=held.chat_seq)
    Stream.objects.filter(id=place.stream).update(head=seq)
    return seq


def _finish(bundle: Bundle, place: _Place, fresh: int, by: Any) -> Brought:
    """Close the log, put the rest beside it, and say in the trail that it was brought."""
    came = ImportedBundle.objects.get(chat_id=place.chat)
    if came.head < len(bundle.events):
        _close(place, bundle.events[-1].at)
        came.head = len(bundle.events)
        came.save(update_fields=["head"])
    beside.commands(bundle, place.chat)
    incident = beside.incident(bundle, place.chat)
    notes = beside.notes(bundle, incident)
    beside.trail(bundle, came, incident)
    _audit(bundle, place, incident, fresh, notes, by)
    return Brought(place.chat, incident.pk, fresh, notes)


def _close(place: _Place, at: int) -> None:
    """Followed read-only, gone, and so long ago that nobody goes on with it."""
    work = unit.current()
    assert work is not None, "services run inside a unit"
    held = work.held(place.chat)
    conn_no = held.state.link.conn_no + 1 if held is not None else 1
    thresholds = rules_of(place.project, place.agent).thresholds
    over = max(work.now, at + thresholds.live_transcript_ms + 1)
    work.append(
        place.chat,
        lambda seq, name: ServerConnected(
            seq=seq, ts=at, chat=name, conn_no=conn_no, read_only=True
        ),
        at,
    )
    work.append(
        place.chat,
        lambda seq, name: ServerDisconnected(
            seq=seq, ts=at, chat=name, conn_no=conn_no, reason=REASON
        ),
        at,
    )
    work.append(place.chat, lambda seq, name: ServerTick(seq=seq, ts=over, chat=name), over)


def _audit(
    bundle: Bundle, place: _Place, incident: Incident, fresh: int, notes: int, by: Any
) -> None:
    audit(
        action="bundle.import",
        result="done" if fresh or notes else "known",
        by=by,
        target=f"incident {incident.pk}",
        chat=place.chat,
        detail={
            "origin": bundle.origin.incarnation,
            "exported_by": bundle.exported_by,
            "events": fresh,
            "notes": notes,
        },
    )
