"""Buttons: pressed through the API, carried out at the host, answered with what came of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.maka import scenes
from tests.agents.maka.conftest import Run
from tests.agents.maka.host import FakeHost
from tests.agents.maka.rig import decision
from tests.agents.maka.script import Session
from tests.agents.maka.test_following import told
from tests.agents.server import House

pytestmark = pytest.mark.e2e
Frame = dict[str, Any]


def ready(house: House, session: Session) -> None:
    scenes.healthy(session)
    told(house, session, "turn.ended", 2)


class TestCompact:
    def test_that_folds_succeeds_with_what_it_freed(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("compact-1")

        def fold(turn: str) -> None:
            name = session.fold(turn, 2_597, 296)
            found = decision("replaced", "priorReplay", boundaryIds=[name])
            session.end(turn, decisions=[found], before=7_695, after=3_433)

        session.compaction = [fold]
        with bridge(host):
            ready(house, session)
            pressed = house.ended(house.press(session.id, "compact_summarize"))
            assert (pressed["state"], pressed["before"], pressed["after"]) == (
                "succeeded", 7_695, 3_433,
            )  # fmt: skip
        attempt = house.chat(session.id)["attempts"][0]
        assert (attempt["trigger"], attempt["outcome"]) == ("forced", "reduced")
        (asked,) = host.asked_for("context.compact")
        assert asked["turnId"].startswith("ctxhealth-")
        kinds = [event["type"] for event in house.events(session.id)]
        assert kinds.count("turn.started") == 2, "a compaction is no turn"

    def test_that_completes_without_folding_has_failed(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("compact-2")

        def empty(turn: str) -> None:
            session.fold(turn, 3_190, 0, wrote=False)
            found = decision("failedOpen", "priorReplay", failOpenReason="empty_summary")
            session.end(turn, decisions=[found], before=7_695, after=3_433)

        def nothing(turn: str) -> None:
            found = decision("unchanged", "priorReplay", reason="already_compacted")
            session.end(turn, decisions=[found], before=7_695, after=3_433)

        session.compaction = [empty, nothing]
        with bridge(host):
            ready(house, session)
            first = house.ended(house.press(session.id, "compact_summarize"))
            assert first["state"] == "failed"
            assert first["state_reason"] == "Maka's compaction failed: empty_summary"
            second = house.ended(house.press(session.id, "compact_summarize"))
            assert second["state_reason"] == "Maka changed nothing: already_compacted"
        later, earlier = house.chat(session.id)["attempts"][:2]
        assert (earlier["outcome"], earlier["error_class"]) == ("summarizer_failed", "empty")
        assert later["before"] == later["after"]

    def test_while_a_turn_runs_is_refused_as_busy(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("compact-3")
        with bridge(host):
            ready(house, session)
            session.begin("t3")
            told(house, session, "turn.started", 3)
            pressed = house.ended(house.press(session.id, "compact_summarize"))
        assert pressed["state"] == "refused"
        assert "a turn is running in Maka" in str(pressed)
        assert host.asked_for("context.compact") == []

    def test_without_the_grant_is_refused_by_name(self, house: House, bridge: Run) -> None:
        from ctxhealth.agents.maka.host import READING_GRANTS

        with FakeHost(grants=READING_GRANTS) as host:
            session = host.session("compact-4")
            with bridge(host):
                ready(house, session)
                pressed = house.ended(house.press(session.id, "compact_summarize"))
        assert pressed["state"] == "refused"
        assert "lacks the grant context.compact" in str(pressed)

    def test_a_newer_host_says_the_outcome_itself(self, house: House, bridge: Run) -> None:
        with FakeHost(compatibility=162) as host:
            session = host.session("compact-5")

            def fold(turn: str) -> None:
                name = session.fold(turn, 2_597, 296)
                found = decision("replaced", "priorReplay", boundaryIds=[name])
                session.end(turn, decisions=[found], before=7_695, after=3_433)

            session.compaction = [fold]
            with bridge(host, "--untested-epoch", "162"):
                ready(house, session)
                pressed = house.ended(house.press(session.id, "compact_summarize"))
        assert pressed["state"] == "succeeded"


class TestStop:
    def test_ends_the_running_turn(self, house: House, host: FakeHost, bridge: Run) -> None:
        session = host.session("stop-1")
        with bridge(host):
            turn = session.begin("t1")
            session.request(turn, 5_000, finish="tool_calls")
            told(house, session, "request.sent")
            pressed = house.ended(house.press(session.id, "stop_turn"))
            assert pressed["state"] == "succeeded"
            (ended,) = told(house, session, "turn.ended")
        assert ended["outcome"] == "cancelled"
        assert host.asked_for("turn.stop")[0]["runId"] == "run-t1"

    def test_without_a_running_turn_is_refused(
        self, house: House, host: FakeHost, bridge: Run
    ) -> None:
        session = host.session("stop-2")
        with bridge(host):
            ready(house, session)
            pressed = house.ended(house.press(session.id, "stop_turn"))
        assert pressed["state"] == "refused" and "No turn is running" in str(pressed)


class TestWhatMakaDoesNotOffer:
    def test_is_not_declared(self, house: House, host: FakeHost, bridge: Run) -> None:
        session = host.session("offer-1")
        with bridge(host):
            ready(house, session)
            (linked, *_) = told(house, session, "server.connected")
        assert linked["commands"] == ["compact_summarize", "stop_turn"]

    def test_read_only_offers_nothing(self, house: House, host: FakeHost, bridge: Run) -> None:
        session = host.session("offer-2")
        with bridge(host, "--read-only"):
            ready(house, session)
            (linked, *_) = told(house, session, "server.connected")
        assert not linked.get("commands") and linked["read_only"] is True
