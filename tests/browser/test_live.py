"""Open pages follow the store, survive the server, and never act late."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser import agents
from tests.browser.conftest import LaunchServer
from tests.browser.dom import BOARD, CHAT, shown, until_live, until_same
from tests.browser.server import Server

Visit = Callable[..., Page]


def reporter_of(server: Server, name: str = "tester", **more: object) -> agents.Reporter:
    return agents.reporter(server.socket, server.answer["tokens"]["agents"], name, **more)


def test_a_change_of_a_chat_shows_on_the_board_and_on_its_page_without_a_reload(
    launch: LaunchServer, visit: Visit
) -> None:
    server = launch()
    with reporter_of(server) as agent:
        chat = agents.healthy_chat(agent, "c1", 60_000)
        board, one = visit(server), visit(server, path="/chats/1/")
        until_live(board)
        until_live(one)
        agents.answered_turn(chat, 71_234)
        expect(board.locator("#row-1")).to_contain_text("71,234", timeout=5_000)
        expect(one.locator("#chat-1-window")).to_contain_text("71,234", timeout=5_000)


def test_a_new_chat_appears_on_the_board_by_itself(launch: LaunchServer, visit: Visit) -> None:
    server = launch()
    with reporter_of(server) as agent:
        agents.healthy_chat(agent, "c1")
        board = visit(server)
        until_live(board)
        agents.over_budget_chat(agent, "c2")
        expect(board.locator("#row-2")).to_be_visible(timeout=5_000)
        expect(board.locator("#rows > tr").first).to_have_id("row-2", timeout=5_000)


def test_the_page_of_no_chats_shows_the_first_one_by_itself(
    launch: LaunchServer, visit: Visit
) -> None:
    server = launch()
    board = visit(server)
    until_live(board)
    expect(board.locator("#rows")).to_have_count(0)
    with reporter_of(server) as agent:
        agents.healthy_chat(agent, "c1")
        expect(board.locator("#row-1")).to_be_visible(timeout=10_000)


def test_a_chat_that_no_longer_fits_the_filter_leaves_the_page(
    launch: LaunchServer, visit: Visit
) -> None:
    server = launch()
    with reporter_of(server) as agent:
        agents.over_budget_chat(agent, "c1")
        troubled = agents.over_budget_chat(agent, "c2")
        board = visit(server, path="/?state=silent")
        until_live(board)
        expect(board.locator("#row-2")).to_be_visible()
        agents.answered_turn(troubled, 50_000)
        expect(board.locator("#row-2")).to_have_count(0, timeout=10_000)
        expect(board.locator("#row-1")).to_be_visible()


@pytest.mark.parametrize(("path", "regions"), [("/", BOARD), ("/chats/1/", CHAT)])
def test_a_killed_server_leaves_a_stale_page_that_equals_a_fresh_load_after_its_return(
    launch: LaunchServer, visit: Visit, path: str, regions: list[str]
) -> None:
    server = launch()
    with reporter_of(server) as agent:
        chat = agents.healthy_chat(agent, "c1")
        agents.healthy_chat(agent, "c2")
        page = visit(server, path=path)
        until_live(page)
        before = shown(page, regions)
        server.kill()
        expect(page.locator("#live.stale")).to_contain_text("stale since", timeout=10_000)
        assert shown(page, regions) == before
        server.start()
        assert agent.wait_connected(40)
        agents.answered_turn(chat, 88_000)
        agents.over_budget_chat(agent, "c3")
        until_live(page)
        fresh = visit(server, path=path)
        until_live(fresh)
        until_same(page, fresh, regions)


def test_a_press_during_an_outage_is_an_error_and_no_command_comes_later(
    launch: LaunchServer, visit: Visit
) -> None:
    server = launch(people={"ada": "operator"}, tokens={"agents": ["ingest", "command"],
                                                        "api": ["operate"]})  # fmt: skip
    pressed: list[str] = []
    with reporter_of(server) as agent:

        @agent.on("compact_fallback")
        def compact(command: object) -> dict[str, int]:
            pressed.append("compact_fallback")
            return {"before": 199_000, "after": 90_000}

        agent.reconnect()
        assert agent.wait_connected(20)
        agents.over_budget_chat(agent, "c1")
        page = visit(server, path="/chats/1/")
        until_live(page)
        page.keyboard.press("f")
        dialog = page.locator("dialog[open]")
        expect(dialog).to_be_visible()
        dialog.locator("[name=reason]").fill("the server is away")
        server.kill()
        expect(page.locator("#live.stale")).to_be_visible(timeout=10_000)
        dialog.locator("button[type=submit], form button:not([data-close])").last.click()
        expect(page.locator("[role=alert]:visible").first).to_contain_text(
            "nothing was sent", timeout=5_000
        )
        server.start()
        assert agent.wait_connected(40)
        until_live(page)
        fresh = visit(server, path="/chats/1/")
        until_live(fresh)
        expect(fresh.locator("#chat-1-commands [id^=command-]")).to_have_count(0)
        assert pressed == []


def test_signing_out_ends_the_live_socket_of_every_page(launch: LaunchServer, visit: Visit) -> None:
    server = launch()
    with reporter_of(server) as agent:
        agents.healthy_chat(agent, "c1")
        page = visit(server)
        until_live(page)
        other = page.context.new_page()
        other.goto(server.origin + "/")
        until_live(other)
        other.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/login/**", timeout=20_000)


def test_a_disabled_account_loses_its_live_page(launch: LaunchServer, visit: Visit) -> None:
    server = launch()
    page = visit(server)
    until_live(page)
    server.seed(people={}, tokens={}, disable=["ada"])
    page.wait_for_url("**/login/**", timeout=40_000)


def test_a_viewer_sees_everything_and_no_buttons(launch: LaunchServer, visit: Visit) -> None:
    server = launch(people={"vic": "viewer"})
    with reporter_of(server) as agent:
        chat = agents.over_budget_chat(agent, "c1")
        page = visit(server, "vic", "/chats/1/")
        until_live(page)
        chat.note("touch")
        assert agent.flush(10)
        page.wait_for_timeout(600)
        assert page.locator("a[data-dialog]").count() == 0
