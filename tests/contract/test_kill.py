"""The server is killed at random moments during ingest: nothing acked is lost, nothing is twice."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.contract.agent import Frame, RawAgent
from tests.contract.conftest import World
from tests.store.streams import event, exchange, message, opened

ROUNDS = 20
AGENTS = 3
BATCH = 20
SEED = 20261130


def nth(seq: int) -> Frame:
    """The event with this seq, always the same one: a resend must not be a conflict."""
    chat = f"c{seq % 4}"
    if seq <= 4:
        return opened(seq, chat)
    if seq % 50 == 0:
        return event(seq, "message.added", chat, id=seq, role="user", kind="text")
    return exchange(seq, 1_000 + seq, chat)[0] if seq % 3 else message(seq, chat, tokens=seq)


class Oracle(threading.Thread):
    """Sends until its socket breaks, and remembers what was acked."""

    def __init__(self, world: World, number: int, acked: int) -> None:
        super().__init__(daemon=True)
        self.world, self.agent_name, self.acked = world, f"kill{number}", acked
        self.wrong: list[str] = []

    def run(self) -> None:
        gone = (ConnectionClosed, InvalidHandshake, OSError, TimeoutError)
        with suppress(*gone), self.world.agent() as agent:
            welcome = agent.hello(agent=self.agent_name, next_seq=self.acked + 1)
            if welcome["acked"] < self.acked:
                self.wrong.append(f"acked {self.acked}, welcome says {welcome['acked']}")
            self._send(agent, welcome["acked"] + 1)

    def _send(self, agent: RawAgent, seq: int) -> None:
        while True:
            agent.events([nth(number) for number in range(seq, seq + BATCH)])
            seq += BATCH
            # Some batches stay in flight: the ack of the one before last is enough to go on.
            while self.acked < seq - 3 * BATCH:
                self.acked = agent.frame("ack")["upto"]


def _wait_for_acks(oracles: list[Oracle], total: int) -> None:
    end = time.monotonic() + 20
    while sum(oracle.acked for oracle in oracles) < total and time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.timeout(300)
def test_twenty_kills_during_ingest_lose_nothing_acked_and_double_nothing(
    own_world: World,
) -> None:
    chance = random.Random(SEED)
    acked = [0] * AGENTS
    for _ in range(ROUNDS):
        oracles = [Oracle(own_world, number, acked[number]) for number in range(AGENTS)]
        for oracle in oracles:
            oracle.start()
        _wait_for_acks(oracles, sum(acked) + chance.randrange(400))
        own_world.server.kill()
        for oracle in oracles:
            oracle.join(30)
            assert not oracle.is_alive() and not oracle.wrong, oracle.wrong
        for number, oracle in enumerate(oracles):
            stored = own_world.seqs(oracle.agent_name)
            assert stored == list(range(1, len(stored) + 1))
            assert len(stored) >= oracle.acked >= acked[number]
            acked[number] = oracle.acked
        own_world.server.start()
    assert min(acked) > 200
    own_world.server.stop()
    own_world.verify()
