"""Cause groups in an open page: the line comes with the order, and goes with the cause."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from ctxhealth.live.service import Live
from tests.live.test_pages import board, ids_in, run, scripts_in
from tests.live.world import Agent, quota_gone


@pytest.fixture
def robot(transactional_db: None) -> Agent:
    return Agent()


async def until_order(page: Any) -> tuple[list[str], dict[str, Any]]:
    """The frames of the look that brought a new order, and that order."""
    async with asyncio.timeout(20):
        while True:
            await asyncio.sleep(max(0.02, (page.due or 0) - asyncio.get_running_loop().time()))
            frames = await page.frames()
            orders = [script for script in scripts_in(frames) if script["type"] == "order"]
            if orders:
                return frames, orders[-1]


def test_the_line_of_a_group_comes_before_its_first_chat_and_goes_with_the_cause(
    robot: Agent,
) -> None:
    first = quota_gone(robot, "c1")
    calm = robot.chat("fine", 10_000)

    async def scenario(live: Live) -> None:
        page = await board(live)
        frames, order = await until_order(page)
        assert order["heads"] == {} and order["ids"] == [first, calm]
        second = await sync_to_async(quota_gone, thread_sensitive=False)(robot, "c2")
        while not order["heads"]:
            frames, order = await until_order(page)
        ((head, group),) = order["heads"].items()
        assert set(order["ids"][:2]) == {first, second} and int(head) == order["ids"][0]
        sent = ids_in(frames)
        assert f"group-{group}" in sent
        assert sent.index(f"row-{first}") >= 0 and 'class="crit one"' in "".join(frames)
        report = sync_to_async(robot.report, thread_sensitive=False)
        await report({"type": "chat.closed", "chat": "c2"})
        for number in range(4):
            await sync_to_async(robot.turn, thread_sensitive=False)("c1", 20_000 + number)
        while order["heads"]:
            frames, order = await until_order(page)
        assert 'class="crit one"' not in "".join(frames)

    run(scenario)
