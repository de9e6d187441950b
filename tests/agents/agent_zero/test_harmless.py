"""With the server down, slow, refusing or sending rubbish a turn takes as long as without it."""

from __future__ import annotations

import statistics
import time

import pytest

from tests.agents.agent_zero.stand_in import StandIn
from tests.agents.trouble import SERVERS

TURNS = 20


@pytest.mark.parametrize("trouble", SERVERS)
def test_no_turn_fails_and_no_hook_waits(host: StandIn, trouble: str) -> None:
    """What a hook costs is the processor's time of the thread it runs in, and no waiting."""
    with SERVERS[trouble]() as url:
        host.settings["url"] = url
        context = host.open()
        watch = host.module("watch")
        spent, real = [0.0], watch.seen

        def timed(point: str, agent: object, kwargs: dict[str, object]) -> None:
            began = time.perf_counter()
            real(point, agent, kwargs)
            spent[0] += time.perf_counter() - began

        watch.seen = timed
        costs = []
        for _ in range(TURNS):
            spent[0] = 0.0
            assert host.say(context) == "yes"
            costs.append(spent[0])
        # A real turn takes half a second and more: 2% of it is 10 ms.
        assert statistics.median(costs) < 0.010, costs
        assert not host.module("books").station().swallowed
