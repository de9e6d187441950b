"""Incidents as files: what comes out on another server is what went in, and nothing hostile."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ctxhealth.core.model import Connection
from ctxhealth.store import incarnation, queries, writes
from ctxhealth.store.bundles import (
    BadBundle,
    TooLarge,
    bundle_of,
    import_bundle,
    looks_like_bundle,
)
from ctxhealth.store.bundles import checking as checking_module
from ctxhealth.store.bundles import packing as packing_module
from ctxhealth.store.models import AuditEntry, Chat, Command, Event, Incident, IncidentNote
from ctxhealth.store.queries.bundles import bundle_of_chat, bundle_trail
from ctxhealth.store.verify import verify
from ctxhealth.store.writer import Writer
from tests.store.conftest import Sender, connect_agent
from tests.store.troubles import Told

pytestmark = pytest.mark.db
Spoil = Callable[[dict[str, Any]], object]


@pytest.fixture
def mia(writer: Writer) -> Any:
    return writes.user_ensure(username="mia", role="admin")


def trouble(sender: Sender, *, closed: bool = True) -> Incident:
    """An incident, closed by three calm requests or still open."""
    told = Told().opens("c1").asks("c1").dead_summarizer("c1", 3).stops("c1")
    if closed:
        told.folds("c1").works("c1", 3)
    sender.send(connect_agent(), told.take())
    return Incident.objects.get()


def packed(incident: Incident, by: str = "mia") -> bytes:
    data = bundle_of(incident.pk, by=by)
    assert data is not None
    return data


def elsewhere() -> None:
    """From here on the database is another one than that which made the bundle."""
    incarnation.begin_anew()


def lines(chat: int, upto: int) -> list[tuple[Any, ...]]:
    rows = Event.objects.filter(chat_id=chat, chat_seq__lte=upto).order_by("chat_seq")
    columns = ("chat_seq", "type", "ts", "received", "at", "body", "tombstone")
    return [(*row[:-1], row[-1] is None) for row in rows.values_list(*columns, "stream_id")]


def test_a_bundle_gives_the_same_log_and_the_same_judgement_elsewhere(
    sender: Sender, mia: Any
) -> None:
    incident = trouble(sender)
    writes.note_add(incident_id=incident.pk, text="The quota **was** gone.", by=mia)
    writes.verdict_set(incident_id=incident.pk, verdict="root_cause", text="quota", by=mia)
    data = packed(incident)
    elsewhere()
    brought = import_bundle(data, by=mia)
    assert brought.chat != incident.chat_id and brought.new and not brought.here
    head = Chat.objects.get(id=incident.chat_id).chat_seq
    assert lines(brought.chat, head) == lines(incident.chat_id, head)
    ours, theirs = queries.incident_detail(brought.incident), queries.incident_detail(incident.pk)
    assert ours is not None and theirs is not None
    assert ours.judged == theirs.judged
    assert ours.view is not None and theirs.view is not None
    assert ours.view.chain == theirs.view.chain
    assert (ours.from_seq, ours.to_seq) == (theirs.from_seq, theirs.to_seq)
    assert [(n.text, n.by, n.at) for n in ours.notes] == [
        (n.text, n.by, n.at) for n in theirs.notes
    ]
    assert (ours.verdict, ours.verdict_text, ours.verdict_by) == ("root_cause", "quota", "mia")
    for moment in (3, 6, head):
        assert queries.chat_detail(brought.chat, at=moment) == queries.chat_detail(
            incident.chat_id, at=moment
        )
    assert verify().problems == []


def test_an_imported_chat_is_marked_and_over(sender: Sender, mia: Any) -> None:
    incident = trouble(sender, closed=False)
    data = packed(incident)
    elsewhere()
    brought = import_bundle(data, by=mia)
    chat = queries.chat_get(brought.chat)
    came = bundle_of_chat(brought.chat)
    assert chat is not None and came is not None
    assert chat.summary.connection is Connection.IMPORTED
    assert (came.exported_by, came.by, came.agent) == ("mia", "mia", "a1")
    assert chat.agent.startswith("a1 (from ")
    detail = queries.incident_detail(brought.incident)
    assert detail is not None and detail.row.closed_at is not None
    assert Chat.objects.get(id=brought.chat).deadline is None
    assert [row.id for row in queries.incident_list().rows] == [incident.pk]
    with pytest.raises(writes.Refused, match="read-only"):
        writes.command_request(
            chat_id=brought.chat, kind="ping", idempotency_key="k", by=mia, reason="why"
        )


def test_the_same_bundle_again_changes_nothing(sender: Sender, mia: Any) -> None:
    incident = trouble(sender)
    writes.note_add(incident_id=incident.pk, text="one", by=mia)
    data = packed(incident)
    elsewhere()
    first = import_bundle(data, by=mia)
    counts = [table.objects.count() for table in (Event, Chat, Incident, IncidentNote, Command)]
    again = import_bundle(data, by=mia)
    assert (again.chat, again.incident) == (first.chat, first.incident)
    assert not again.new
    assert counts == [
        table.objects.count() for table in (Event, Chat, Incident, IncidentNote, Command)
    ]


def test_a_later_bundle_of_the_same_incident_goes_on_where_the_first_ended(
    sender: Sender, mia: Any
) -> None:
    told = Told().opens("c1").asks("c1").dead_summarizer("c1", 3).stops("c1")
    agent = connect_agent()
    sender.send(agent, told.take())
    incident = Incident.objects.get()
    early = packed(incident)
    sender.send(agent, told.folds("c1").works("c1", 3).take())
    writes.note_add(incident_id=incident.pk, text="later", by=mia)
    late = packed(incident)
    elsewhere()
    first = import_bundle(early)
    second = import_bundle(late)
    assert (second.chat, second.incident) == (first.chat, first.incident)
    assert (second.events > 0, second.notes) == (True, 1)
    head = Chat.objects.get(id=incident.chat_id).chat_seq
    assert lines(second.chat, head) == lines(incident.chat_id, head)
    detail = queries.incident_detail(second.incident)
    assert detail is not None and detail.view is not None
    assert detail.view.closed_how == "requests"
    assert not import_bundle(early).events
    assert verify().problems == []


def test_an_import_that_broke_off_is_finished_by_the_next(
    sender: Sender, mia: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxhealth.store.bundles import bringing

    incident = trouble(sender)
    data = packed(incident)
    elsewhere()
    monkeypatch.setattr(bringing, "CHUNK", 5)
    with monkeypatch.context() as broken:
        broken.setattr(bringing, "_finish", lambda *_: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            import_bundle(data)
    brought = import_bundle(data)
    head = Chat.objects.get(id=incident.chat_id).chat_seq
    assert lines(brought.chat, head) == lines(incident.chat_id, head)
    assert queries.chat_get(brought.chat).summary.connection is Connection.IMPORTED  # type: ignore[union-attr]
    assert verify().problems == []


def test_a_bundle_of_this_very_server_leads_to_what_it_was_made_of(
    sender: Sender, mia: Any
) -> None:
    incident = trouble(sender)
    brought = import_bundle(packed(incident), by=mia)
    assert brought == (incident.chat_id, incident.pk, 0, 0, True)
    assert Chat.objects.count() == 1


def test_commands_come_along_closed_and_the_trail_stays_beside_ours(
    sender: Sender, mia: Any
) -> None:
    incident = trouble(sender, closed=False)
    pressed = writes.command_request(
        chat_id=incident.chat_id,
        kind="compact_fallback",
        idempotency_key="k",
        by=mia,
        reason="stalled",
    )
    data = packed(incident)
    lines_before = AuditEntry.objects.count()
    elsewhere()
    brought = import_bundle(data)
    (command,) = queries.chat_commands(brought.chat)
    assert command.id != pressed.id
    assert (command.kind, command.by, command.reason) == ("compact_fallback", "mia", "stalled")
    assert (command.state, command.open) == ("unknown", False)
    trail = bundle_trail(brought.chat, brought.incident)
    assert [(line.action, line.by) for line in trail] == [("command.compact_fallback", "mia")]
    assert all(line.ip == "" for line in trail)
    added = AuditEntry.objects.order_by("id")[lines_before:]
    assert [entry.action for entry in added] == ["bundle.import"]


def test_a_bundle_of_an_imported_chat_keeps_its_first_origin(sender: Sender, mia: Any) -> None:
    incident = trouble(sender)
    data = packed(incident)
    elsewhere()
    brought = import_bundle(data)
    again = packed(Incident.objects.get(id=brought.incident), by="leo")
    one, two = (msgspec.json.decode(each) for each in (data, again))
    assert two["origin"]["incarnation"] == one["origin"]["incarnation"]
    assert (two["events"], two["chat"]) == (one["events"], one["chat"])


def test_a_review_comes_along_as_a_review(sender: Sender, mia: Any) -> None:
    incident = trouble(sender)
    made = writes.review_create(
        chat_id=incident.chat_id, from_seq=2, to_seq=9, title="Slow start", by=mia
    )
    data = packed(Incident.objects.get(id=made))
    elsewhere()
    brought = import_bundle(data)
    detail = queries.incident_detail(brought.incident)
    assert detail is not None
    assert (detail.row.kind, detail.row.sentence) == ("review", "Slow start")
    assert (detail.from_seq, detail.to_seq, detail.created_by) == (2, 9, "mia")
    assert import_bundle(data).incident == brought.incident


def test_no_token_address_or_account_is_in_a_bundle(sender: Sender, mia: Any) -> None:
    incident = trouble(sender)
    writes.audit(
        action="command.stop_turn",
        result="refused",
        by=mia,
        chat=incident.chat_id,
        ip="203.0.113.9",
        request_id="req-77",
        target="c1",
    )
    data = packed(incident)
    assert b"203.0.113.9" not in data and b"req-77" not in data


def test_a_log_that_is_too_long_is_said_to_be(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident = trouble(sender)
    monkeypatch.setattr(packing_module, "MOST_EVENTS", 5)
    with pytest.raises(TooLarge, match="a bundle holds 5"):
        bundle_of(incident.pk)
    assert bundle_of(10**9) is None


def _event(bundle: dict[str, Any], place: int, **changes: Any) -> None:
    names = ("chat_seq", "type", "ts", "received", "at", "body", "by_server", "tombstone")
    line = dict(zip(names, bundle["events"][place], strict=True)) | changes
    bundle["events"][place] = [line[name] for name in names]


HOSTILE: dict[str, tuple[Spoil, str]] = {
    "no format": (lambda b: b.pop("format"), "no bundle"),
    "another format": (lambda b: b.update(format="zip"), "no bundle"),
    "a later version": (lambda b: b.update(version=2), "version 2"),
    "a version of another type": (lambda b: b.update(version={"a": 1}), "version"),
    "a field nobody knows": (lambda b: b.update(run="rm"), "unknown field"),
    "no event": (lambda b: b.update(events=[]), "length"),
    "a hole": (lambda b: b["events"].pop(3), "without a hole"),
    "a body that is no JSON": (lambda b: _event(b, 2, body="{"), "event 3"),
    "a body of another type": (lambda b: _event(b, 2, type="turn.ended"), "event 3"),
    "a body of another chat": (
        lambda b: _event(b, 2, body='{"seq":3,"ts":1,"type":"chat.closed","chat":"x"}',
                         type="chat.closed"), "another chat"),
    "a deep body": (lambda b: _event(b, 2, body='{"a":' * 60 + "1" + "}" * 60), "event 3"),
    "a very deep body": (lambda b: _event(b, 2, body="[" * 60_000), "event 3"),
    "a NUL in a body": (
        lambda b: _event(b, 1, body=b["events"][1][5].replace("About", "A\\u0000bout")),
        "characters that cannot be stored"),
    "a huge number": (
        lambda b: _event(b, 2, type="x.y",
                         body='{"seq":3,"ts":1,"type":"x.y","chat":"c1","n":1e999}'), "event 3"),
    "a server's event of an agent": (
        lambda b: _event(b, 2, type="server.tick",
                         body='{"type":"server.tick","seq":3,"ts":1,"chat":"c1"}'),
        "only a server"),
    "a tombstone that is none": (lambda b: _event(b, 2, tombstone=True), "tombstone"),
    "a body that is too large": (lambda b: _event(b, 2, body=" " * 80_000), "length"),
    "an end beyond the log": (lambda b: b["incident"].update(closed_seq=9_999), "beyond the end"),
    "an end before the beginning": (lambda b: b["incident"].update(opened_seq=1), "out of order"),
    "a state of nobody": (lambda b: b["incident"].update(state="<b>"), "incident.state"),
    "a verdict of nobody": (lambda b: b["incident"].update(verdict="guilty"), "verdict"),
    "a view that is none": (lambda b: b["incident"].update(judged='{"a":1}'), "incident.judged"),
    "a kind of nobody": (lambda b: b["incident"].update(kind="other"), "kind"),
    "a NUL in a note": (lambda b: b["notes"].append({"text": "a\0b", "at": 1}), "NUL"),
    "a note without a time": (lambda b: b["notes"].append({"text": "a"}), "at"),
    "a time before all time": (lambda b: b["notes"].append({"text": "a", "at": -1}), "notes"),
    "a long note": (lambda b: b["notes"].append({"text": "a" * 20_001, "at": 1}), "length"),
    "many notes": (lambda b: b.update(notes=[{"text": "a", "at": 1}] * 1_001), "length"),
    "a command with odd arguments": (
        lambda b: b.update(commands=[{"id": "x", "kind": "ping", "args": "[1]", "state": "failed",
                                      "created_at": 1, "deliver_by": 1, "lease_s": 1}]), "args"),
    "a nameless agent": (lambda b: b["chat"].update(agent=""), "agent"),
}  # fmt: skip


@pytest.fixture
def honest(sender: Sender, mia: Any) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.json.decode(packed(trouble(sender)))
    elsewhere()
    return data


def test_every_hostile_bundle_is_refused_with_a_sentence_and_nothing_is_written(
    honest: dict[str, Any],
) -> None:
    before = (Chat.objects.count(), Event.objects.count(), Incident.objects.count())
    wrong = {}
    for name, (spoil, said) in HOSTILE.items():
        spoiled = copy.deepcopy(honest)
        spoil(spoiled)
        with pytest.raises(BadBundle) as refusal:
            import_bundle(msgspec.json.encode(spoiled))
        if said not in str(refusal.value) or len(str(refusal.value)) > 300:
            wrong[name] = str(refusal.value)
    assert wrong == {}
    assert before == (Chat.objects.count(), Event.objects.count(), Incident.objects.count())
    assert import_bundle(msgspec.json.encode(honest)).events == len(honest["events"])


NO_BUNDLES = (
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"{" * 100_000, b'{"format":"ctxhealth.bundle"}',
    b'{"format":"ctxhealth.bundle","version":1,"events":' + b"[" * 200_000,
)  # fmt: skip


def test_what_is_no_bundle_at_all_is_refused(writer: Writer) -> None:
    for data in NO_BUNDLES:
        with pytest.raises(BadBundle):
            import_bundle(data)


def test_a_bundle_that_is_too_large_is_not_even_read(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking_module, "MOST_BYTES", 10)
    with pytest.raises(BadBundle, match="at most 10 are read"):
        import_bundle(b" " * 11)


def test_another_story_under_the_same_origin_is_refused(honest: dict[str, Any]) -> None:
    import_bundle(msgspec.json.encode(honest))
    other = copy.deepcopy(honest)
    body = other["events"][4][5]
    _event(other, 4, at=other["events"][4][4] + 1, body=body)
    with pytest.raises(BadBundle, match="event 5 is another one"):
        import_bundle(msgspec.json.encode(other))


def test_a_bundle_is_known_by_how_it_begins(honest: dict[str, Any]) -> None:
    assert looks_like_bundle(msgspec.json.encode(honest))
    assert not looks_like_bundle(b'{"type":"session_meta"}')
    assert not looks_like_bundle(b"PK\x03\x04")
