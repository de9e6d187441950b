"""A host that answers what nobody can read: what it concerns waits, all else goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.maka import scenes
from tests.agents.maka.conftest import Run
from tests.agents.maka.host import FakeHost
from tests.agents.maka.test_following import told
from tests.agents.server import House

RUBBISH = [None, {"fragments": "zz", "nextCursor": None}]


@pytest.mark.parametrize("rubbish", RUBBISH, ids=repr)
def test_a_session_that_cannot_be_read_costs_no_other_and_comes_later(
    house: House, host: FakeHost, bridge: Run, rubbish: Any
) -> None:
    number = RUBBISH.index(rubbish)
    bad, good = host.session(f"rubbish-{number}"), host.session(f"beside-{number}")
    answer = host.answer
    wrong = {"on": True}

    def answered(peer: Any, operation: str, given: dict[str, Any]) -> Any:
        named = peer.subscriptions.get(given.get("subscriptionId"), [None])[0]
        if wrong["on"] and operation == "session.transcript.page" and named == bad.id:
            return rubbish
        return answer(peer, operation, given)

    host.answer = answered  # type: ignore[method-assign]
    with bridge(host) as running:
        scenes.healthy(bad)
        scenes.healthy(good)
        told(house, good, "turn.ended", 2)
        house.until(lambda: "cannot be read" in running.err.getvalue(), "not a word of it", 20)
        wrong["on"] = False
        scenes.healthy(bad)
        told(house, bad, "turn.ended", 2)
        assert "Traceback" not in running.err.getvalue()


@pytest.mark.parametrize("rubbish", [[], {"kind": "page", "sessions": "zz"}], ids=repr)
def test_a_host_that_cannot_be_read_is_tried_again(
    house: House, host: FakeHost, bridge: Run, rubbish: Any
) -> None:
    session = host.session(f"unread-{len(repr(rubbish))}")
    answer, left = host.answer, [rubbish, rubbish]
    host.answer = lambda *given: left.pop() if left else answer(*given)  # type: ignore[method-assign]
    with bridge(host) as running:
        scenes.healthy(session)
        told(house, session, "turn.ended", 2)
        assert "answers what this bridge cannot read" in running.err.getvalue()


def test_an_epoch_that_is_no_number_is_unsupported(
    house: House, host: FakeHost, bridge: Run
) -> None:
    host.compatibility = "abc"  # type: ignore[assignment]
    with bridge(host) as running:
        running.wait()
    assert "unsupported host epoch" in str(running.refusal)
