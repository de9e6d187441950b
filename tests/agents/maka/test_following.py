"""What a session of the host becomes on the server: real sockets on both sides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agents.maka import scenes
from tests.agents.maka.conftest import Run
from tests.agents.maka.host import FakeHost
from tests.agents.maka.rig import decision
from tests.agents.maka.script import Session
from tests.agents.server import House

pytestmark = pytest.mark.e2e
Frame = dict[str, Any]


def told(house: House, session: Session, kind: str, count: int = 1) -> list[Frame]:
    """The chat's events of a type, once there are so many."""

    def enough() -> list[Frame] | None:
        found = house.events(session.id, kind)
        return found if len(found) >= count else None

    found: list[Frame] = house.until(enough, f"no {count} {kind}", 60)
    return found


def codes(chat: Frame) -> dict[str, str]:
    return {finding["code"]: finding["severity"] for finding in chat["findings"]}


class TestAHealthySession:
    def test_shows_the_provider_s_numbers_and_a_compaction_that_helped(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("healthy-1")
        with bridge(host):
            scenes.healthy(session)
            told(house, session, "turn.ended", 2)
        chat = house.chat(session.id)
        assert (chat["load"]["value"], chat["load"]["source"]) == (8_158, "provider")
        assert (chat["window"]["value"], chat["trigger"]["value"]) == (16_000, 12_000)
        (attempt,) = chat["attempts"]
        assert attempt["outcome"] == "reduced" and attempt["relief"] == "relieved"
        assert attempt["summarizer"]["calls"] == 1 and attempt["summarizer"]["input"] == 9_400
        assert "critical" not in codes(chat).values()
        usages = [event["usage"]["input"] for event in told(house, session, "model.replied", 5)]
        assert usages == [4_938, 9_100, 12_168, 9_400, 8_158]

    def test_sends_lengths_and_no_text(self, house: House, host: FakeHost, bridge: Run) -> None:
        session = host.session("healthy-2", name="Secret plans")
        with bridge(host):
            scenes.healthy(session)
            told(house, session, "turn.ended", 2)
        events = house.events(session.id)
        text = json.dumps(events)
        assert "SECRET" not in text and "Secret plans" not in text and "go on" not in text
        sizes = [event["chars"] for event in events if event["type"] == "message.added"]
        assert 9_000 in sizes and len(sizes) == 8

    def test_with_text_excerpt_sends_titles_and_excerpts(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("healthy-3", name="Upgrade plans")
        with bridge(host, "--text", "excerpt"):
            scenes.healthy(session)
            told(house, session, "turn.ended", 2)
        text = json.dumps(house.events(session.id))
        assert "Upgrade plans" in text and '"excerpt": "go on"' in text
        assert "SECRET" not in text

    def test_shows_what_fills_the_context(self, house: House, host: FakeHost, bridge: Run) -> None:
        session = host.session("healthy-4")
        with bridge(host):
            scenes.healthy(session)
            told(house, session, "turn.ended", 2)
        last = told(house, session, "history.snapshot")[-1]
        parts = last["system"] + last["tools"] + last["extras"] + last["history"]
        assert 0 < parts <= 8_158 and parts > 8_100

    def test_that_was_there_before_is_read_from_its_beginning(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("healthy-5")
        scenes.healthy(session)
        with bridge(host):
            told(house, session, "turn.ended", 2)
        kinds = [event["type"] for event in house.events(session.id)]
        assert kinds.count("turn.started") == 2 and kinds.count("request.sent") == 5

    def test_older_than_the_days_asked_for_waits_until_it_is_used(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("old-1", used=1_700_000_000_000)
        fresh = host.session("fresh-1")
        scenes.healthy(session)
        with bridge(host):
            scenes.healthy(fresh)
            told(house, fresh, "turn.ended", 2)
            assert session.id not in {chat["chat"] for chat in house.chats()}
            session.facts["used"] = None
            host.broadcast("session.catalog.changed", revision=9, sessionId=session.id)
            told(house, session, "turn.ended", 2)


class TestIncidents:
    def test_a_structural_latch_is_inferred_and_said_to_be_unjustified(
        self, house: House, bridge: Run
    ) -> None:
        with FakeHost(compatibility=162) as host:
            session = host.session("latched-1")
            with bridge(host, "--untested-epoch", "162"):
                scenes.latched(session)
                told(house, session, "turn.ended")
                chat = house.chat(session.id)
        (latch,) = chat["latches"]
        assert (latch["kind"], latch["justified"]) == ("structural", False)
        assert latch["reason"].startswith("Inferred: ")
        assert codes(chat)["latched_unjustified"] == "critical"
        rescue, first = chat["attempts"]
        assert (first["outcome"], first["summarizer"]["calls"]) == ("nothing_foldable", 0)
        assert (rescue["trigger"], rescue["reported"]) == ("reactive", "skipped")
        assert chat["state"] == "blocked"

    def test_the_tested_version_has_no_latch(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("latched-2")
        with bridge(host):
            scenes.latched(session)
            told(house, session, "turn.ended")
        chat = house.chat(session.id)
        assert chat["latches"] == []
        (attempt,) = chat["attempts"]
        assert (attempt["trigger"], attempt["outcome"]) == ("reactive", "nothing_foldable")

    def test_an_overflow_whose_rescue_got_an_empty_summary(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("overflow-1")
        with bridge(host):
            scenes.overflowed(session)
            told(house, session, "turn.ended", 2)
        chat = house.chat(session.id)
        (attempt,) = chat["attempts"]
        assert (attempt["trigger"], attempt["outcome"]) == ("reactive", "summarizer_failed")
        assert attempt["error_class"] == "empty"
        assert codes(chat)["over_window"] == "critical"
        ended = told(house, session, "turn.ended", 2)[-1]
        assert ended["outcome"] == "error"
        assert ended["error"] == "context_overflow: Context window exceeded"
        (failed,) = told(house, session, "model.failed")
        assert (failed["error"], failed["status"]) == ("overflow", 400)

    def test_a_summarizer_that_says_nothing_until_maka_refuses_to_send(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("exhausted-1")
        with bridge(host):
            scenes.exhausted(session)
            told(house, session, "turn.ended")
        chat = house.chat(session.id)
        assert [a["outcome"] for a in chat["attempts"]] == ["summarizer_failed"] * 3
        assert codes(chat)["summarizer_failing"] == "critical"
        (refused,) = told(house, session, "guard.refused")
        assert (refused["code"], refused["window"]) == ("context_budget_exhausted", 16_000)

    def test_a_turn_that_says_nothing_is_silent(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("silent-1")
        with bridge(host):
            scenes.silent(session)
            told(house, session, "turn.ended")
        (ended,) = told(house, session, "turn.ended")
        assert ended["outcome"] == "silent"
        assert "silent_empty" in codes(house.chat(session.id))


class TestTheRest:
    def test_a_turn_too_long_for_a_trace_keeps_its_load(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("endless-1")
        with bridge(host):
            turn = session.begin("t1")
            for number in range(90):
                session.request(turn, 5_000 + number, finish="tool_calls")
                session.tool(turn, 100)
            house.until(
                lambda: house.chat(session.id)["load"]["value"] == 5_089, "no load of the last"
            )
            folded = decision(
                "replaced", boundaryIds=["hcheckpoint-x"], estimatedTokensBefore=4_000,
                estimatedTokensAfter=200,
            )  # fmt: skip
            session.say(turn)
            session.end(turn, decisions=[folded], before=3_000, after=3_000)
            told(house, session, "turn.ended")
        (note,) = told(house, session, "note")
        assert note["code"] == "untraced"
        (attempt,) = house.chat(session.id)["attempts"]
        assert (attempt["outcome"], attempt["summarizer"]["calls"]) == ("reduced", None)

    def test_a_sub_agent_is_a_chat_of_its_own_with_its_parent(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        parent = host.session("parent-1")
        child = host.session("child-1", parent="parent-1")
        with bridge(host):
            scenes.healthy(parent)
            scenes.silent(child)
            told(house, child, "turn.ended")
            (opened,) = told(house, child, "chat.opened")
        assert opened["parent"] == parent.id
        assert house.chat(parent.id)["load"]["value"] == 8_158

    def test_a_user_whom_maka_asks_something_is_not_waiting(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("asks-1")
        with bridge(host):
            turn = session.begin("t1")
            session.request(turn, 5_000, finish="tool_calls")
            told(house, session, "turn.started")
            session.waits(turn)
            told(house, session, "turn.ended")
            assert house.chat(session.id)["waiting_since"] is None
            session.resumes(turn)
            assert told(house, session, "turn.started", 2)[1]["kind"] == "continuation"
            session.say(turn)
            session.end(turn)
            assert told(house, session, "turn.ended", 2)[1]["outcome"] == "answered"

    def test_a_model_that_writes_for_long_is_said_to_live(
        self, house: House, host: FakeHost, bridge: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ctxhealth.agents.maka.follower._ALIVE_S", 0.0)
        session = host.session("writes-1")
        with bridge(host):
            session.begin("t1")
            told(house, session, "turn.started")
            delta = {"kind": "text", "turnId": "t1", "runId": "run-t1", "messageId": "m",
                     "startOffset": 0, "text": "SECRET"}  # fmt: skip
            host.push(session.id, "session_delta", sessionId=session.id, delta=delta)
            (note, *_) = told(house, session, "note")
        assert note["code"] == "writing"
        assert "SECRET" not in json.dumps(house.events(session.id))

    def test_an_archived_session_is_closed(self, house: House, host: FakeHost, bridge: Run) -> None:
        session = host.session("archived-1")
        with bridge(host):
            scenes.silent(session)
            told(house, session, "turn.ended")
            session.archived = True
            host.broadcast("session.catalog.changed", revision=99, sessionId=session.id)
            told(house, session, "chat.closed")

    def test_forty_sessions_take_three_connections(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        sessions = [host.session(f"many-{number:02}") for number in range(40)]
        with bridge(host):
            for session in sessions:
                turn = session.begin("t1")
                session.request(turn, 5_000)
                session.say(turn)
                session.end(turn)

            def all_there() -> bool:
                rows = house.get("/api/v1/chats?q=many-&limit=100")["chats"]
                return len([row for row in rows if row["load"]["value"] == 5_000]) == 40

            house.until(all_there, "not all 40 chats", 40)
            assert len(host.peers) == 3
        assert host.cuts == []
