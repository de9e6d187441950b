"""Restarts and losses on either side: nothing is lost, and nothing is sent twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.maka import scenes
from tests.agents.maka.conftest import Run
from tests.agents.maka.host import CREDENTIAL, FakeHost
from tests.agents.maka.rig import Running
from tests.agents.maka.script import Session
from tests.agents.maka.test_following import told
from tests.agents.server import House
from tests.client.server import eventually

pytestmark = pytest.mark.e2e
Frame = dict[str, Any]


def again(session: Session, turn: str, tokens: int) -> None:
    session.begin(turn)
    session.request(turn, tokens)
    session.say(turn)
    session.end(turn)


def requests(house: House, session: Session) -> list[str]:
    return [event["request"] for event in house.events(session.id, "request.sent")]


def test_a_bridge_that_is_started_again_goes_on_where_it_was(
    house: House, host: FakeHost, bridge: Run
) -> None:
    session = host.session("restart-1")
    with bridge(host) as first:
        scenes.healthy(session)
        told(house, session, "turn.ended", 2)
    again(session, "t3", 8_400)
    with bridge(host) as second:
        assert second.agent == first.agent
        told(house, session, "turn.ended", 3)
        again(session, "t4", 8_600)
        told(house, session, "turn.ended", 4)
    found = requests(house, session)
    assert len(found) == len(set(found)) == 7
    kinds = [event["type"] for event in house.events(session.id)]
    assert kinds.count("chat.opened") == 1 and kinds.count("compaction.finished") == 1


def test_a_bridge_that_is_started_again_within_a_turn_knows_it(
    house: House, host: FakeHost, bridge: Run
) -> None:
    session = host.session("restart-2")
    turn = session.begin("t1")
    session.request(turn, 9_000, finish="tool_calls")
    session.tool(turn)
    with bridge(host):
        told(house, session, "model.replied")
    session.fold(turn, 9_400, 296)
    session.request(turn, 5_000)
    session.say(turn)
    session.end(turn)
    with bridge(host):
        told(house, session, "turn.ended")
    kinds = [event["type"] for event in house.events(session.id)]
    assert kinds.count("turn.started") == 1 and kinds.count("request.sent") == 3
    (attempt,) = house.chat(session.id)["attempts"]
    assert (attempt["before"], attempt["outcome"]) == (9_000, "reduced")


def test_a_host_that_is_started_again_is_followed_on(
    house: House, host: FakeHost, bridge: Run
) -> None:
    session = host.session("host-1")
    with bridge(host) as running:
        scenes.healthy(session)
        told(house, session, "turn.ended", 2)
        before = host.epoch_id
        host.restart()
        again(session, "t3", 8_400)
        told(house, session, "turn.ended", 3)
        assert host.epoch_id != before
        assert "waiting for it" in running.err.getvalue()
        house.until(lambda: "Connected to" in running.err.getvalue(), "no word that it is back")
    found = requests(house, session)
    assert len(found) == len(set(found)) == 6


def test_a_host_that_is_about_to_end_is_waited_for(
    house: House, host: FakeHost, bridge: Run
) -> None:
    session = host.session("draining-1")
    host.draining = True
    with bridge(host) as running:
        eventually(lambda: "about to end" in running.err.getvalue(), "the reason")
        host.draining = False
        again(session, "t1", 5_000)
        told(house, session, "turn.ended")


def test_a_slow_consumer_subscribes_again_and_misses_nothing(
    house: House, host: FakeHost, bridge: Run
) -> None:
    session = host.session("slow-1")
    with bridge(host):
        again(session, "t1", 5_000)
        told(house, session, "turn.ended")
        host.slow_consumer(session.id)
        again(session, "t2", 5_500)
        told(house, session, "turn.ended", 2)
        eventually(lambda: len(host.asked_for("subscription.open")) == 2, "a subscription")
    assert len(set(requests(house, session))) == 2


def test_a_hole_in_the_frames_is_pulled_after_a_new_subscription(
    house: House, host: FakeHost, bridge: Run
) -> None:
    session = host.session("hole-1")
    with bridge(host):
        again(session, "t1", 5_000)
        told(house, session, "turn.ended")
        for peer in host.peers:
            for entry in peer.subscriptions.values():
                entry[1] += 1
        again(session, "t2", 5_500)
        told(house, session, "turn.ended", 2)
    assert len(requests(house, session)) == 2


def test_a_long_transcript_comes_in_pages_and_pieces(
    house: House, host: FakeHost, bridge: Run
) -> None:
    session = host.session("long-1")
    turn = session.begin("t1")
    session.request(turn, 9_000, finish="tool_calls")
    session.tool(turn, 700_000)
    session.request(turn, 9_500)
    session.say(turn)
    session.end(turn)
    for number in range(2, 42):
        again(session, f"t{number}", 9_500 + number)
    with bridge(host):
        told(house, session, "turn.ended", 41)
    sizes = [event["chars"] for event in house.events(session.id, "message.added")]
    assert max(sizes) == 700_000 and len(sizes) == 2 * 41 + 2
    pages = host.asked_for("session.transcript.page")
    assert len(pages) == 3 and host.cuts == []


def test_a_server_that_is_away_for_a_while_gets_all_of_it(
    house: House, host: FakeHost, bridge: Run
) -> None:
    session = host.session("away-1")
    with bridge(host) as running:
        again(session, "t1", 5_000)
        told(house, session, "turn.ended")
        house.server.stop()
        try:
            again(session, "t2", 5_500)
            eventually(lambda: "waiting for it" in running.err.getvalue(), "the trouble")
        finally:
            house.server.start()
        # Its patience is tested elsewhere, and takes up to half a minute.
        running.bridge.line.reporter.reconnect()
        told(house, session, "turn.ended", 2)
    assert len(requests(house, session)) == len(set(requests(house, session))) == 2


class TestRefused:
    def test_a_credential_that_the_host_does_not_know(
        self, house: House, host: FakeHost, tmp_path: Path
    ) -> None:
        given = (tmp_path / "state", host.url, house.url, house.agent_token)
        with Running(*given, credential="maka_rh_wrong") as running:
            running.wait()
        assert running.refusal is not None and running.refusal.code == 3
        assert "does not take this credential (HTTP 401)" in str(running.refusal)

    def test_a_host_of_another_epoch(self, house: House, bridge: Run) -> None:
        with FakeHost(compatibility=76) as host, bridge(host) as running:
            running.wait()
        assert running.refusal is not None and running.refusal.code == 3
        said = "unsupported host epoch 76: this bridge was tested with 39."
        assert str(running.refusal) == said

    def test_a_credential_that_lacks_a_grant_it_reads_by(self, house: House, bridge: Run) -> None:
        with FakeHost(grants=("host.status",)) as host, bridge(host) as running:
            running.wait()
        assert running.refusal is not None
        assert "lacks a grant: Operation session.catalog.query" in str(running.refusal)


def test_over_the_local_socket_it_lets_go_when_it_is_the_only_one_left(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.agents.maka.bridge._ALONE_S", 0.2)
    with FakeHost(path=str(tmp_path / "h.sock")) as host:
        session = host.session("local-1")
        given = (tmp_path / "state", host.url, house.url, house.agent_token)
        with Running(*given, credential=None) as running:
            again(session, "t1", 5_000)
            told(house, session, "turn.ended")
            assert len(host.peers) == 1
            host.others = 0
            eventually(lambda: not host.peers, "the bridge to let go")
            assert "Only the bridge is left" in running.out.getvalue()
    assert host.cuts == []


def test_the_credential_of_the_tests_has_the_form_of_a_real_one() -> None:
    assert len(CREDENTIAL) == 51
