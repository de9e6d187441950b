"""The one sending task per page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from uvicorn.protocols.utils import ClientDisconnected

from ctxhealth.live import browser as module
from ctxhealth.live.browser import (
    Browser,
    BrowserLeft,
    Counts,
    TooSlow,
    json_frame,
    pause_after,
)
from ctxhealth.live.consumer import UiConsumer


class Counter:
    """A page whose fragment is the number of times it was looked at."""

    def __init__(self, chats: set[int]) -> None:
        self.chats = chats
        self.looks = 0
        self.shown: list[int] = []
        self.due: float | None = None

    def concerns(self, chats: Iterable[int]) -> bool:
        return not self.chats.isdisjoint(chats)

    def show(self, chats: list[int]) -> None:
        self.shown = chats

    async def frames(self) -> list[str]:
        self.looks += 1
        return [f"<i>{self.looks}</i>"]

    async def counts(self) -> Counts:
        return {"critical": 1}


async def yes() -> bool:
    return True


async def until(condition: object) -> None:
    async with asyncio.timeout(5):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.005)


def run(scenario: object) -> None:
    asyncio.run(scenario)  # type: ignore[arg-type]


def test_a_page_gets_a_tick_and_its_whole_state_on_connect() -> None:
    async def scenario() -> None:
        sent: list[str] = []

        async def send(frame: str) -> None:
            sent.append(frame)

        task = asyncio.create_task(Browser(Counter({1}), send, yes).run())
        await until(lambda: len(sent) == 2)
        task.cancel()
        assert sent[0].startswith('{"type":"tick","now":')
        assert '"critical":1' in sent[0]
        assert sent[1] == "<i>1</i>"

    run(scenario())


def test_a_thousand_marks_are_at_most_one_update_per_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MIN_INTERVAL_SECONDS", 0.05)

    async def scenario() -> None:
        page = Counter({1})

        async def send(frame: str) -> None:
            return None

        live = Browser(page, send, yes)
        task = asyncio.create_task(live.run())
        loop = asyncio.get_running_loop()
        began = loop.time()
        while loop.time() < began + 0.5:
            live.mark([1])
            await asyncio.sleep(0)
        took = loop.time() - began
        task.cancel()
        assert 2 <= page.looks <= took / 0.05 + 1

    run(scenario())


def test_a_change_of_another_chat_wakes_nobody() -> None:
    async def scenario() -> None:
        page = Counter({1})

        async def send(frame: str) -> None:
            return None

        live = Browser(page, send, yes)
        live.mark([2, 3])
        assert not live._wake.is_set()
        live.mark([3, 1])
        assert live._wake.is_set()

    run(scenario())


def test_when_nobody_knows_what_changed_every_page_looks() -> None:
    async def scenario() -> None:
        async def send(frame: str) -> None:
            return None

        live = Browser(Counter(set()), send, yes)
        live.mark(None)
        assert live._wake.is_set()

    run(scenario())


def test_the_task_ends_when_the_rights_are_gone() -> None:
    async def scenario() -> None:
        async def no() -> bool:
            return False

        sent: list[str] = []

        async def send(frame: str) -> None:
            sent.append(frame)

        await asyncio.wait_for(Browser(Counter({1}), send, no).run(), 5)
        assert sent == []

    run(scenario())


def test_the_rights_are_asked_for_again_at_every_tick() -> None:
    async def scenario() -> None:
        asked = 0

        async def renew() -> bool:
            nonlocal asked
            asked += 1
            return asked < 4

        async def send(frame: str) -> None:
            return None

        live = Browser(Counter({1}), send, renew, tick_seconds=0.01)
        await asyncio.wait_for(live.run(), 10)
        assert asked == 4

    run(scenario())


def test_a_browser_that_takes_nothing_is_given_up_and_no_other_waits_for_it() -> None:
    async def scenario() -> None:
        async def stuck(frame: str) -> None:
            await asyncio.Event().wait()

        sent: list[str] = []

        async def send(frame: str) -> None:
            sent.append(frame)

        slow = asyncio.create_task(Browser(Counter({1}), stuck, yes, send_timeout=0.2).run())
        quick = asyncio.create_task(Browser(Counter({1}), send, yes).run())
        await until(lambda: len(sent) == 2)
        assert not slow.done()
        with pytest.raises(TooSlow):
            await asyncio.wait_for(slow, 5)
        quick.cancel()

    run(scenario())


def test_a_browser_that_leaves_ends_its_task_and_nobody_is_told_of_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def leave(frame: str) -> None:
        raise ClientDisconnected

    async def nobody() -> None:
        with pytest.raises(BrowserLeft):
            await Browser(Counter({1}), leave, yes).run()
        consumer = UiConsumer(live=lambda: None)  # type: ignore[arg-type, return-value]
        await consumer.keep_sending(Browser(Counter({1}), leave, yes))

    run(nobody())
    assert caplog.records == []


def test_a_page_that_is_due_looks_again_without_a_hint() -> None:
    async def scenario() -> None:
        page = Counter({1})

        async def send(frame: str) -> None:
            if page.looks == 1:
                page.due = asyncio.get_running_loop().time() + 0.01

        task = asyncio.create_task(Browser(page, send, yes).run())
        await until(lambda: page.looks >= 2)
        task.cancel()

    run(scenario())


def test_dear_updates_come_less_often() -> None:
    assert pause_after(0.0) == 0.25
    assert pause_after(0.01) == pytest.approx(0.24)
    assert pause_after(0.3) == pytest.approx(0.6)
    assert pause_after(9) == 2.0


def test_a_frame_for_scripts_starts_with_a_brace() -> None:
    assert json_frame("order", ids=[1, 2]) == '{"type":"order","ids":[1,2]}'
