"""What open pages are sent, against the real store: few frames, the right ones, none twice."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from asgiref.sync import async_to_sync, sync_to_async

from ctxhealth.live.chats import UnknownChat
from ctxhealth.live.matching import matches
from ctxhealth.live.pages import open_page
from ctxhealth.live.service import Live
from ctxhealth.live.subscription import parse_subscription
from ctxhealth.store import queries, through
from ctxhealth.store.queries import BoardFilters
from ctxhealth.store.writer import Writer
from ctxhealth.web.fragments import REGION_ID
from tests.live.world import Agent, answered

Scenario = Callable[[Live], Awaitable[None]]


@pytest.fixture
def robot(transactional_db: None) -> Agent:
    return Agent()


def run(scenario: Scenario) -> None:
    """With a real writer whose commits reach the pages, as in the server."""

    async def whole() -> None:
        live, writer = Live(), Writer()
        writer.on_commit_hooks.append(live.on_commit)
        writer.on_command_hooks.append(live.on_commit)
        writer.start()
        try:
            await scenario(live)
        finally:
            await asyncio.to_thread(writer.stop)
            await live.stop()

    async_to_sync(whole)()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def turn(agent: Agent, live: Live, chat: str, load: int) -> None:
    """One answered turn, committed and heard of."""
    before = live.board.generation
    await sync_to_async(agent.turn, thread_sensitive=False)(chat, load)
    await until(lambda: live.board.generation > before)


def ids_in(frames: list[str]) -> list[str]:
    """Ids of the top-level elements."""
    return [
        found
        for frame in frames
        if not frame.startswith("{")
        for found in re.findall(r'<\w+ id="([^"]+)"[^>]*hx-swap-oob="morph"', frame)
    ]


def scripts_in(frames: list[str]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(frame) for frame in frames if frame.startswith("{")]


async def board(live: Live, query: bytes = b"view=board", operate: bool = True) -> Any:
    return await open_page(live, parse_subscription(query), operate=operate)


def test_a_board_gets_everything_on_connect_and_then_only_what_changed(robot: Agent) -> None:
    one, two = robot.chat("c1", 60_000), robot.chat("c2", 70_000)

    async def scenario(live: Live) -> None:
        page = await board(live)
        first = await page.frames()
        assert set(ids_in(first)) >= {f"row-{one}", f"row-{two}", "board-chips"}
        assert scripts_in(first)[-1]["type"] == "order"
        assert sorted(scripts_in(first)[-1]["ids"]) == [one, two]
        assert await page.frames() == []
        await turn(robot, live, "c1", 65_432)
        frames = await page.frames()
        assert f"row-{one}" in ids_in(frames)
        assert f"row-{two}" not in ids_in(frames)
        assert "65,432" in "".join(frames)

    run(scenario)


def test_a_new_chat_comes_with_the_order_that_names_it(robot: Agent) -> None:
    robot.chat("c1", 60_000)

    async def scenario(live: Live) -> None:
        page = await board(live)
        await page.frames()
        new = await sync_to_async(robot.chat, thread_sensitive=False)("c2", 190_000)
        await until(lambda: live.board.version(new) > 0)
        frames: list[str] = []
        # The board is queried at most once a second: the page says itself when to look again.
        while not any(script["type"] == "order" for script in scripts_in(frames)):
            await asyncio.sleep(max(0.0, (page.due or 0) - asyncio.get_running_loop().time()))
            frames = await page.frames()
        assert f"row-{new}" in ids_in(frames)
        assert new in scripts_in(frames)[-1]["ids"]

    run(scenario)


def test_a_row_that_left_the_filter_is_said_to_be_gone(robot: Agent) -> None:
    pk = robot.chat("c1", 60_000)

    async def scenario(live: Live) -> None:
        page = await board(live, b"view=board&state=healthy")
        await page.frames()
        report = sync_to_async(robot.report, thread_sensitive=False)
        await report({"type": "agent.stopped", "chat": "c1", "reason": "loop", "count": 5})
        await until(lambda: live.board.version(pk) > 0)
        gone: list[int] = []
        while not gone:
            await asyncio.sleep(max(0.0, (page.due or 0) - asyncio.get_running_loop().time()))
            gone = [pk for frame in scripts_in(await page.frames()) for pk in frame["gone"]]
        assert gone == [pk]

    run(scenario)


def test_a_row_beyond_the_first_page_follows_once_the_browser_says_it_shows_it(
    robot: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.live.board.PAGE_ROWS", 1)
    robot.chat("c1", 150_000)
    far = robot.chat("c2", 10_000)

    async def scenario(live: Live) -> None:
        page = await board(live)
        assert f"row-{far}" not in ids_in(await page.frames())
        page.show([far, 999_999])
        assert f"row-{far}" in ids_in(await page.frames())
        await turn(robot, live, "c2", 12_345)
        assert "12,345" in "".join(await page.frames())

    run(scenario)


def test_a_row_that_left_the_first_page_follows_while_it_stands_and_comes_back_whole(
    robot: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.live.board.PAGE_ROWS", 1)
    monkeypatch.setattr("ctxhealth.live.board_page.PAGE_ROWS", 1)
    monkeypatch.setattr("ctxhealth.live.board.MIN_AGE_SECONDS", 0.0)
    monkeypatch.setattr("ctxhealth.live.board.AGE_PER_COST", 0)
    one, two = robot.chat("c1", 120_000), robot.chat("c2", 60_000)

    async def scenario(live: Live) -> None:
        page = await board(live)
        assert scripts_in(await page.frames())[-1]["ids"] == [one]
        page.show([one])
        await page.frames()
        await turn(robot, live, "c2", 130_000)
        last = scripts_in(await said(page))[-1]
        assert (last["ids"], last["gone"]) == ([two], [one])
        await turn(robot, live, "c1", 112_233)
        frames = await page.frames()
        assert "112,233" in "".join(frames)
        assert all(script["gone"] == [] for script in scripts_in(frames))
        await turn(robot, live, "c2", 30_000)
        frames = await said(page)
        assert scripts_in(frames)[-1]["ids"] == [one]
        assert f"row-{one}" in ids_in(frames)

    async def said(page: Any) -> list[str]:
        """Frames up to the next order."""
        frames: list[str] = []
        async with asyncio.timeout(10):
            while not scripts_in(frames):
                frames += await page.frames()
                await asyncio.sleep(0.01)
        return frames

    run(scenario)


def test_twenty_browsers_share_one_render_and_one_query(robot: Agent) -> None:
    robot.chat("c1", 60_000)

    async def scenario(live: Live) -> None:
        pages = [await board(live) for _ in range(20)]
        await asyncio.gather(*(page.frames() for page in pages))
        assert live.board.queried == 1
        rendered = live.renderer.rendered
        assert rendered == 1
        await turn(robot, live, "c1", 61_000)
        await asyncio.gather(*(page.frames() for page in pages))
        # The turn may have been committed in several steps, each a version of the row.
        assert live.renderer.rendered - rendered <= 4

    run(scenario)


def test_viewers_and_operators_do_not_share_fragments(robot: Agent) -> None:
    robot.chat("c1", 60_000)
    robot.report({"type": "agent.stopped", "chat": "c1", "reason": "loop", "count": 5})

    async def scenario(live: Live) -> None:
        operator = "".join(await (await board(live, operate=True)).frames())
        viewer = "".join(await (await board(live, operate=False)).frames())
        assert "data-dialog" in operator
        assert "data-dialog" not in viewer

    run(scenario)


def test_a_chats_page_gets_its_regions_and_then_those_that_differ(robot: Agent) -> None:
    pk = robot.chat("c1", 60_000)

    async def scenario(live: Live) -> None:
        page = await board(live, f"view=chat:{pk}".encode())
        first = await page.frames()
        assert f"chat-{pk}-headline" in ids_in(first)
        assert scripts_in(first)[-1]["type"] == "moved"
        assert await page.frames() == []
        await turn(robot, live, "c1", 71_000)
        frames = await page.frames()
        assert f"chat-{pk}-window" in ids_in(frames)
        assert f"chat-{pk}-latches" not in ids_in(frames)

    run(scenario)


def test_a_change_during_a_load_is_not_lost_in_it(robot: Agent) -> None:
    pk = robot.chat("c1", 60_000)

    async def scenario(live: Live) -> None:
        first = asyncio.create_task(live.chats.view(pk))
        for _ in range(3):  # The view asks, the load begins, the query is on its way.
            await asyncio.sleep(0)
        live.board._hear({pk: live.board.version(pk) + 1})
        late = await live.chats.view(pk)
        assert late.generation >= live.board.heard(pk)
        assert (await first).generation < late.generation
        assert live.chats.loaded == 2

    run(scenario)


def test_a_chat_that_does_not_exist_has_no_page(robot: Agent) -> None:
    async def scenario(live: Live) -> None:
        with pytest.raises(UnknownChat):
            await board(live, b"view=chat:77")

    run(scenario)


def test_a_lost_hint_is_made_up_for_when_the_page_looks_by_itself(
    robot: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.live.board.MAX_AGE_SECONDS", 0.0)
    monkeypatch.setattr("ctxhealth.live.chats.MAX_AGE_SECONDS", 0.0)
    pk = robot.chat("c1", 60_000)

    async def scenario(live: Live) -> None:
        rows, one = await board(live), await board(live, f"view=chat:{pk}".encode())
        await rows.frames()
        await one.frames()
        running = through.installed()
        assert running is not None
        running.on_commit_hooks.clear()  # Nobody tells anybody anything any more.
        await sync_to_async(robot.turn, thread_sensitive=False)("c1", 87_654)
        assert "87,654" in "".join(await rows.frames())
        assert "87,654" in "".join(await one.frames())

    run(scenario)


HOSTILE = [
    '<div id="command-form" hx-swap-oob="true">x</div>',
    '"><script>alert(1)</script>',
    "</td></tr><tr id='row-999'>",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "{{ 7|add:7 }}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_frame_has_only_ids_of_the_servers_own_making(robot: Agent, text: str) -> None:
    pk = robot.chat("c1", 60_000, title=text, model=text)
    robot.report(
        {"type": "message.added", "chat": "c1", "id": text[:100], "role": "tool",
         "kind": "tool_result", "tokens": 9_000, "name": text, "excerpt": text},
        {"type": "latch.set", "chat": "c1", "latch": text, "scope": "turn", "reason": text},
        {"type": "model.failed", "chat": "c1", "request": "r9", "purpose": "chat",
         "error": "other", "detail": text},
        *answered("c1", text, 70_000),
    )  # fmt: skip

    async def scenario(live: Live) -> None:
        for query in (b"view=board", f"view=chat:{pk}".encode()):
            frames = await (await board(live, query)).frames()
            found = ids_in(frames)
            assert found
            assert [region for region in found if not REGION_ID.match(region)] == []
            whole = "".join(frame for frame in frames if not frame.startswith("{"))
            assert "<script" not in whole
            assert "<img src=x" not in whole
            assert "row-999'" not in whole

    run(scenario)


@pytest.mark.parametrize(
    "filters",
    [
        BoardFilters(),
        BoardFilters(states=("healthy",)),
        BoardFilters(states=("stopped", "over")),
        BoardFilters(agent="robot"),
        BoardFilters(model="large"),
        BoardFilters(latched=True),
        BoardFilters(latched=False),
        BoardFilters(waiting=True),
        BoardFilters(outcome="reduced"),
        BoardFilters(q="ALPHA chat"),
        BoardFilters(q="öl"),
        BoardFilters(q="%"),
        BoardFilters(q="_"),
    ],
)
def test_one_row_is_judged_by_the_filters_as_the_database_judges_it(
    robot: Agent, filters: BoardFilters
) -> None:
    robot.chat("alpha", 60_000, model="large")
    robot.chat("beta", 150_000, title="Ölung 100%")
    robot.report(
        {"type": "latch.set", "chat": "beta", "latch": "l", "scope": "turn"},
        {"type": "turn.started", "chat": "alpha", "turn": "t", "kind": "user"},
        {"type": "compaction.started", "chat": "beta", "attempt": "a", "trigger": "proactive",
         "before": 150_000, "scope": "prompt"},
        {"type": "compaction.finished", "chat": "beta", "attempt": "a", "reported": "ok",
         "before": 150_000, "after": 40_000, "scope": "prompt"},
    )  # fmt: skip
    Agent("other").chat("gamma", 10_000)
    everything = queries.board_page().rows
    assert len(everything) == 3
    by_database = {row.id for row in queries.board_page(filters).rows}
    assert {row.id for row in everything if matches(filters, row)} == by_database
