"""A session file that somebody brought becomes a chat, once."""

from __future__ import annotations

import gzip
import json

import pytest

from ctxhealth.core.model import Connection
from ctxhealth.store import incarnation, queries, writes
from ctxhealth.store.bundles import bundle_of
from ctxhealth.store.models import Chat, Event
from tests.imports.bring import Desk, content, events
from tests.readers.gemini_session import GeminiSession
from tests.readers.pi_session import PiSession
from tests.readers.rollout import Rollout
from tests.readers.session import SESSION, Session


def session(turns: int, id: str = SESSION) -> Session:
    made = Session(id)
    for number in range(turns):
        made.turn(f"m{number}", 20_000 + 1_000 * number)
    return made


def test_a_session_becomes_a_chat_that_is_called_imported(desk: Desk) -> None:
    row = desk.bring(session(3).bytes())
    assert (row.state, row.reason, row.what) == ("done", "", "a Claude Code session")
    assert row.chat is not None
    chat = queries.chat_get(row.chat)
    assert chat is not None
    assert chat.summary.connection is Connection.IMPORTED
    assert chat.summary.load.value == 22_000
    assert row.lines == 6
    assert row.events == len(events(row.chat)) > 6
    assert row.chats == 1
    assert row.unreadable == 0


def test_nothing_is_left_in_the_spool(desk: Desk) -> None:
    desk.bring(session(1).bytes())
    desk.bring(b"\x00\x01 nonsense")
    assert desk.spool.names() == set()


@pytest.mark.parametrize("make", [Rollout, PiSession])
def test_other_products_are_recognised_by_their_rows(desk: Desk, make: type) -> None:
    made = make()
    for number in range(2):
        made.turn(20_000 + 100 * number)
    row = desk.bring(b"\n".join(made.lines()), name="anything.txt")
    assert row.state == "done", row.reason
    assert row.chat is not None


def test_a_document_without_a_last_newline_is_read_whole(desk: Desk) -> None:
    made = GeminiSession()
    for number in range(3):
        made.turn(12_000 + 100 * number)
    first = desk.bring(made.document(), name="session.json")
    assert (first.state, first.what, first.troubles) == ("done", "a Gemini CLI session", ())
    assert first.chat is not None
    chat = queries.chat_get(first.chat)
    assert chat is not None and chat.summary.load.value == 12_200
    made.turn(13_000)
    longer = desk.bring(made.document(), name="session.json")
    assert longer.chat == first.chat
    assert len([e for e in events(first.chat) if e.type == "model.replied"]) == 4


def test_the_same_file_twice_lands_on_the_same_chat(desk: Desk) -> None:
    data = session(3).bytes()
    first = desk.bring(data)
    log = content(first.chat)
    second = desk.bring(data, name="copy.jsonl")
    assert (second.state, second.chat, second.events) == ("known", first.chat, 0)
    assert "session.jsonl" in second.reason
    assert content(first.chat) == log


def test_the_same_session_packed_adds_nothing(desk: Desk) -> None:
    data = session(3).bytes()
    first = desk.bring(data)
    log = content(first.chat)
    packed = desk.bring(gzip.compress(data), name="session.jsonl.gz")
    assert (packed.state, packed.chat, packed.events) == ("known", first.chat, 0)
    assert content(first.chat) == log


def test_a_longer_file_of_the_session_adds_only_what_is_new(desk: Desk) -> None:
    whole = session(6)
    lines = whole.lines()
    short = desk.bring(b"\n".join(lines[:6]) + b"\n")
    longer = desk.bring(whole.bytes())
    assert (longer.state, longer.chat) == ("done", short.chat)
    assert longer.lines == 12
    assert longer.events < len(events(short.chat))
    replies = [event for event in events(short.chat) if event.type == "model.replied"]
    assert len(replies) == 6


def test_a_shorter_file_after_the_longer_one_adds_nothing(desk: Desk) -> None:
    whole = session(6)
    first = desk.bring(whole.bytes())
    log = content(first.chat)
    desk.bring(b"\n".join(whole.lines()[:6]) + b"\n")
    assert content(first.chat) == log


def test_a_file_that_was_rewritten_counts_its_rows_once(desk: Desk) -> None:
    whole = session(4)
    first = desk.bring(whole.bytes())
    extra = json.dumps({"type": "summary", "summary": "Beds", "leafUuid": "x"}).encode()
    whole.turn("new", 31_000)
    again = desk.bring(extra + b"\n" + whole.bytes())
    assert again.chat == first.chat
    replies = [event for event in events(first.chat) if event.type == "model.replied"]
    assert len(replies) == 5


def test_a_last_line_without_its_newline_is_read_and_not_read_again(desk: Desk) -> None:
    whole = session(3)
    short = desk.bring(whole.bytes()[:-1])
    whole.turn("new", 31_000)
    longer = desk.bring(whole.bytes())
    assert longer.chat == short.chat
    replies = [event for event in events(short.chat) if event.type == "model.replied"]
    assert len(replies) == 4


def test_a_torn_last_line_is_told_and_read_from_the_next_file(desk: Desk) -> None:
    whole = session(3)
    torn = desk.bring(whole.bytes()[:-40])
    assert torn.state == "done"
    assert [trouble.problem for trouble in torn.troubles] == ["the last line is not finished"]
    assert torn.troubles[0].line == 6
    longer = desk.bring(whole.bytes())
    assert longer.chat == torn.chat
    replies = [event for event in events(torn.chat) if event.type == "model.replied"]
    assert len(replies) == 3


def test_what_cannot_be_read_is_told_line_by_line_without_its_content(desk: Desk) -> None:
    lines = session(3).lines()
    lines.insert(2, b'{"type":"user","secret":"pa55word","n":12')
    lines.insert(4, b"not json at all")
    row = desk.bring(b"\n".join(lines) + b"\n")
    assert row.state == "done"
    assert row.unreadable == 2
    assert [trouble.line for trouble in row.troubles] == [3, 5]
    assert '"secret":"…"' in row.troubles[0].shape
    told = " ".join(trouble.shape + trouble.problem for trouble in row.troubles)
    assert "pa55word" not in told and "not json" not in told
    assert row.chat is not None
    chat = queries.chat_get(row.chat)
    assert chat is not None


def test_line_numbers_are_those_of_the_file_that_was_brought_last(desk: Desk) -> None:
    whole = session(4)
    lines = whole.lines()
    desk.bring(b"\n".join(lines[:4]) + b"\n")
    lines.insert(6, b"[1, 2]")
    row = desk.bring(b"\n".join(lines) + b"\n")
    assert row.unreadable == 1
    assert [(trouble.line, trouble.shape) for trouble in row.troubles] == [(7, "[0, 0] (6 bytes)")]


def test_two_thousand_bad_lines_are_counted_and_not_all_listed(desk: Desk) -> None:
    lines = session(1).lines() + [b"{broken %d" % number for number in range(2_000)]
    row = desk.bring(b"\n".join(lines) + b"\n")
    assert row.unreadable == 2_000
    assert sum(trouble.count for trouble in row.troubles) == 2_000
    assert len(row.troubles) < 250


def test_sub_agents_in_files_of_their_own_are_children_and_counted_once(desk: Desk) -> None:
    main = session(2)
    side = Session()
    side.prompt("look", isSidechain=True, agentId="a1")
    side.answer("s1", 9_000, isSidechain=True, agentId="a1")
    for row in side.rows:
        main.rows.append({
            "type": "progress", "sessionId": SESSION, "timestamp": row["timestamp"],
            "uuid": f"p-{row['uuid']}", "parentToolUseID": "t1",
            "data": {"type": "agent_progress", "agentId": "a1", "message": row},
        })  # fmt: skip
    desk.queue(side.bytes(), "agent-a1.jsonl", batch="both")
    first = desk.bring(main.bytes(), f"{SESSION}.jsonl", batch="both")
    child = queries.chat_find("claude-code (imported)", f"{SESSION}:agent-a1")
    assert child is not None and first.chat is not None
    assert [row.id for row in queries.chat_children(first.chat)] == [child.id]
    assert len([e for e in events(child.id) if e.type == "model.replied"]) == 1


def test_a_sub_agent_that_stands_in_its_session_is_not_added_again(desk: Desk) -> None:
    main = session(2)
    side = Session()
    side.prompt("look", isSidechain=True, agentId="a1")
    side.answer("s1", 9_000, isSidechain=True, agentId="a1")
    for row in side.rows:
        main.rows.append({
            "type": "progress", "sessionId": SESSION, "timestamp": row["timestamp"],
            "uuid": f"p-{row['uuid']}", "parentToolUseID": "t1",
            "data": {"type": "agent_progress", "agentId": "a1", "message": row},
        })  # fmt: skip
    desk.bring(main.bytes())
    child = queries.chat_find("claude-code (imported)", f"{SESSION}:agent-a1")
    assert child is not None
    log = content(child.id)
    again = desk.bring(side.bytes(), "agent-a1.jsonl")
    assert again.state == "refused"
    assert again.chat == child.id
    assert content(child.id) == log


def test_a_bundle_of_an_incident_lands_on_its_chat_and_incident(desk: Desk) -> None:
    first = desk.bring(session(3).bytes())
    assert first.chat is not None
    admin = writes.user_ensure(username="ada", role="admin")
    incident = writes.review_create(chat_id=first.chat, by=admin)
    bundle = bundle_of(incident)
    assert bundle is not None
    here = desk.bring(bundle, name="incident.json")
    assert (here.state, here.chat, here.incident) == ("known", first.chat, incident)
    assert "exported here" in here.reason
    other = bundle.replace(incarnation.current().encode(), b"another-server")
    brought = desk.bring(gzip.compress(other), name="incident.json.gz")
    assert (brought.state, brought.what) == ("done", "an incident bundle"), brought.reason
    assert brought.chat not in (None, first.chat)
    assert brought.incident not in (None, incident)
    again = desk.bring(other, name="again.json")
    assert (again.state, again.chat, again.incident) == ("known", brought.chat, brought.incident)


def test_a_bundle_that_cannot_be_trusted_is_refused_with_its_sentence(desk: Desk) -> None:
    row = desk.bring(b'{"format":"ctxhealth.bundle","version":1}')
    assert row.state == "refused"
    assert row.reason.startswith("This bundle cannot be read: ")


def test_a_chat_that_retention_deleted_is_brought_again_whole(desk: Desk) -> None:
    data = session(3).bytes()
    first = desk.bring(data)
    assert first.chat is not None
    log = [kind for kind, _ in content(first.chat)]
    Event.objects.filter(chat_id=first.chat).delete()
    Chat.objects.filter(id=first.chat).delete()
    again = desk.bring(data)
    assert (again.state, again.reason) == ("done", "")
    assert [kind for kind, _ in content(again.chat)] == log
    assert desk.bring(data + b"\n").events == 0


def test_a_torn_object_that_nothing_completes_is_shown_by_its_last_line(desk: Desk) -> None:
    data = session(2).bytes() + b'{"type":"user","text":"half of\nit\n'
    row = desk.bring(data)
    (trouble,) = row.troubles
    assert trouble.line == 6 and "torn object" in trouble.problem
    assert trouble.shape == "… (2 bytes)"
