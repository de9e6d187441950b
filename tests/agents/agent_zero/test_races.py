"""What comes between the plan and the change of a command: a pass, a user, an odd id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.agent_zero.stand_in import StandIn, ids_of
from tests.client.server import eventually

TASK = "_organize_history_task"


def between(host: StandIn, act: Callable[[], object]) -> None:
    """Do ``act`` once, right before the next function on the agent's own loop."""
    loops = host.module("loops")
    real, done = loops.run_on, []

    def run_on(loop: str, function: Callable[[], Any], *timeout: float) -> Any:
        if not done:
            done.append(act())
        return real(loop, function, *timeout)

    loops.run_on = run_on


def test_a_pass_that_a_short_turn_left_behind_is_ended_before_the_change(host: StandIn) -> None:
    from helpers.defer import DeferredTask

    context = host.open()
    history = host.preload(context, topics=30)
    ids = ids_of(history)
    host.models["utility"] = lambda text: asyncio.sleep(0.3, "late summary")

    def left_behind() -> None:
        task = DeferredTask("Background").start_task(history.compress)
        context.agent0.data[TASK] = task
        host.told("request.sent")

    between(host, left_behind)
    done = host.press("compact_fallback")
    assert done["state"] == "succeeded", done
    host.settle(context)
    assert sorted(ids_of(history)) == sorted(ids)


def test_a_user_who_speaks_into_a_rescue_loses_no_word(host: StandIn) -> None:
    host.agent.LINE["gives_up"] = False
    context = host.open()
    history = host.preload(context)
    ids = ids_of(history)
    host.models["utility"] = lambda text: asyncio.sleep(0.05, "")

    def speak() -> None:
        calls = len(host.events("request.sent"))
        context.communicate(host.agent.UserMessage("are you there?"))
        host.told("request.sent", calls + 1)

    context.communicate(host.agent.UserMessage("go on"))
    host.told("compaction.finished", 3)
    between(host, speak)
    assert host.press("rescue")["state"] == "succeeded"
    eventually(lambda: not context.is_running(), "the nudged turn")
    now = ids_of(history)
    assert len(now) == len(set(now)) and set(ids) <= set(now)
    said = [event["excerpt"] for event in host.told("message.added") if event["role"] == "user"]
    assert "are you there?" in said


@pytest.mark.parametrize("chat", ["a/A1", "/A", "/A0", "ünï/Ab"])
def test_a_context_is_found_whatever_its_name(host: StandIn, chat: str) -> None:
    host.preload(host.open(chat))
    assert host.press("compact_fallback", chat)["state"] == "succeeded"
