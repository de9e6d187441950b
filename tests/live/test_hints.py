"""Hints: few, small, and worth nothing but a look."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer

from ctxhealth.live import hints
from ctxhealth.live.hints import Hints, chats_message


@pytest.fixture
def layer(monkeypatch: pytest.MonkeyPatch) -> InMemoryChannelLayer:
    layer = InMemoryChannelLayer()
    monkeypatch.setattr(hints, "get_channel_layer", lambda: layer)
    return layer


async def received(layer: InMemoryChannelLayer, channel: str) -> dict[str, Any]:
    message: dict[str, Any] = await asyncio.wait_for(layer.receive(channel), 5)
    return message


def test_the_first_change_is_said_at_once_and_the_burst_after_it_in_one_hint(
    layer: InMemoryChannelLayer,
) -> None:
    async def scenario() -> None:
        channel = await layer.new_channel()
        await layer.group_add(hints.CHATS, channel)
        source = Hints(interval=0.1)
        source.mark({1: 1})
        assert (await received(layer, channel))["ids"] == [1]
        for version in range(2, 500):
            source.mark({1: version, version: 1})
        burst = await received(layer, channel)
        assert len(burst["ids"]) == 499
        assert dict(zip(burst["ids"], burst["versions"], strict=True))[1] == 499
        async with asyncio.timeout(5):
            while source.sent < 2:
                await asyncio.sleep(0)
        await source.stop()

    asyncio.run(scenario())


def test_marking_again_after_the_last_hint_sends_again(layer: InMemoryChannelLayer) -> None:
    async def scenario() -> None:
        channel = await layer.new_channel()
        await layer.group_add(hints.CHATS, channel)
        source = Hints(interval=0.01)
        for chat in (1, 2, 3):
            source.mark({chat: 1})
            assert (await received(layer, channel))["ids"] == [chat]
        await source.stop()

    asyncio.run(scenario())


def test_a_layer_that_fails_costs_the_hint_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        async def group_send(self, group: str, message: dict[str, Any]) -> None:
            raise ConnectionError("down")

    monkeypatch.setattr(hints, "get_channel_layer", lambda: Broken())

    async def scenario() -> None:
        source = Hints(interval=0.01)
        source.mark({1: 1})
        async with asyncio.timeout(5):
            while source.failed < 1:
                await asyncio.sleep(0.005)
        source.mark({2: 1})
        async with asyncio.timeout(5):
            while source.failed < 2:
                await asyncio.sleep(0.005)
        await source.stop()

    asyncio.run(scenario())


def test_more_chats_than_a_hint_carries_are_said_as_all() -> None:
    message = chats_message(dict.fromkeys(range(hints.MAX_IDS + 1), 1), "me", 0)
    assert message["all"] is True
    assert message["ids"] == []


def test_a_hint_has_no_integer_keys_and_no_data() -> None:
    assert chats_message({7: 3}, "me", 4) == {
        "type": "chats.changed",
        "origin": "me",
        "serial": 4,
        "all": False,
        "ids": [7],
        "versions": [3],
    }


def test_only_the_sockets_of_that_person_hear_that_their_rights_changed(
    layer: InMemoryChannelLayer,
) -> None:
    async def scenario() -> None:
        mine, other = await layer.new_channel(), await layer.new_channel()
        await layer.group_add(hints.user_group(1), mine)
        await layer.group_add(hints.user_group(2), other)
        await hints.user_changed(1)
        assert (await received(layer, mine))["type"] == "user.changed"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(layer.receive(other), 0.05)

    asyncio.run(scenario())
