"""One connection: how strict the fake host is, and that the bridge keeps within its bounds."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ctxhealth.agents.maka.frames import HostSaid
from ctxhealth.agents.maka.link import Link
from ctxhealth.agents.maka.sockets import Ended, Unreachable
from tests.agents.maka.host import CREDENTIAL, FakeHost
from tests.agents.maka.strictness import refuses
from tests.client.server import eventually


def link(host: FakeHost, frames: list[Any] | None = None) -> Link:
    kept = [] if frames is None else frames
    return Link(host.url, CREDENTIAL, "test", host.compatibility, lambda _, f: kept.append(f))


def test_the_fake_host_refuses_what_the_real_one_refuses(host: FakeHost) -> None:
    sessions = [host.session(f"s{number}").id for number in range(17)]
    refuses(host.url, CREDENTIAL, sessions)


def test_many_questions_at_once_stay_within_what_the_host_takes(host: FakeHost) -> None:
    asked = link(host)
    host.answering.clear()
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda: answers.append(asked.ask("host.status")))
        for _ in range(100)
    ]
    for thread in threads:
        thread.start()
    eventually(lambda: host.peers[0].waiting >= 32, "the questions")
    host.answering.set()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 100 and host.cuts == []
    asked.close()


def test_an_error_of_the_host_keeps_its_code(host: FakeHost) -> None:
    asked = link(host)
    with pytest.raises(HostSaid, match="was not found") as said:
        asked.ask("turn.query", sessionId="none", turnId="none")
    assert said.value.code == "not_found"
    asked.close()


def test_a_question_over_a_connection_that_ends_is_told_so(host: FakeHost) -> None:
    frames: list[Any] = []
    asked = link(host, frames)
    with pytest.raises(Ended):
        asked.ask("host.status", more=1)
    eventually(lambda: {"kind": "ended"} in frames, "the end")
    assert not asked.alive and len(host.cuts) == 1


def test_nobody_at_the_address_may_come_later() -> None:
    with pytest.raises(Unreachable):
        Link("ws://127.0.0.1:9/runtime-host", CREDENTIAL, "test", 39, lambda *_: None)
