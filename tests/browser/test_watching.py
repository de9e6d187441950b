"""The board while one watches it: the tab, the voice, the further pages, cause groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, Page, expect

from ctxhealth.client import Reporter
from tests.browser import agents
from tests.browser.conftest import sign_in
from tests.browser.dom import until_live
from tests.browser.server import Server

Visit = Callable[..., Page]
Launch = Callable[..., Server]
MANY = 130


def reporter(server: Server, name: str = "tester") -> Reporter:
    return agents.reporter(server.socket, server.answer["tokens"]["agents"], name)


def quota_gone(agent: Reporter, name: str) -> Any:
    """A chat above its trigger whose summarizer has no quota left."""
    trigger = {"tokens": 50_000, "inclusive": False, "scope": "prompt"}
    chat = agents.healthy_chat(agent, name, load=60_000, trigger=trigger)
    fails = {"model": "glm-flash", "provider": "zai", "calls": 1, "error": "quota"}
    for _ in range(3):
        attempt = chat.compaction_started(before=60_000, scope="prompt")
        chat.compaction_finished(
            attempt, "failed", before=60_000, after=60_000, scope="prompt", summarizer=fails
        )
        agents.answered_turn(chat, 60_000)
    return chat


def icon(page: Page) -> str:
    return page.locator("#favicon").get_attribute("href") or ""


def test_the_tab_tells_of_the_worst_and_how_many(launch: Launch, visit: Visit) -> None:
    server = launch()
    with reporter(server) as agent:
        agents.healthy_chat(agent, "c1")
        board = visit(server)
        until_live(board)
        expect(board).to_have_title("Chats · ctxhealth")
        assert "favicon-ok" in icon(board)
        troubled = agents.over_budget_chat(agent, "c2")
        expect(board).to_have_title("(1) Chats · ctxhealth", timeout=10_000)
        assert "favicon-critical" in icon(board)
        expect(board.locator("#alarm")).to_have_text("Silent: Chat c2")
        count = board.get_by_role("link", name="Incidents 1 open")
        expect(count).to_be_visible(timeout=20_000)
        agents.answered_turn(troubled, 50_000)
        expect(board).to_have_title("Chats · ctxhealth", timeout=10_000)
        server.kill()
        expect(board.locator("#live.stale")).to_be_visible(timeout=10_000)
        assert "favicon-stale" in icon(board)
        server.start()


def test_further_chats_come_as_one_scrolls_and_each_stands_once(
    launch: Launch, visit: Visit
) -> None:
    server = launch()
    with reporter(server) as agent:
        chats = [agent.chat(f"c{n}", title=f"Chat {n}", window=200_000) for n in range(MANY)]
        for chat in chats:
            chat.turn_started()
        assert agent.flush(30)
        page = visit(server)
        until_live(page)
        rows = page.locator("#rows tr[id^=row-]")
        assert rows.count() == 100
        page.locator("#more").scroll_into_view_if_needed()
        expect(rows).to_have_count(MANY, timeout=10_000)
        names = [row.get_attribute("id") for row in rows.all()]
        assert len(set(names)) == MANY
        agents.answered_turn(chats[-1], 77_777)
        expect(page.locator("#rows")).to_contain_text("77,777", timeout=10_000)


def test_chats_of_one_cause_come_together_in_an_open_page(launch: Launch, visit: Visit) -> None:
    server = launch()
    with reporter(server) as agent:
        quota_gone(agent, "c1")
        page = visit(server)
        until_live(page)
        assert page.locator("tr.group").count() == 0
        second = quota_gone(agent, "c2")
        line = page.locator("#rows > tr.group")
        expect(line).to_contain_text("2 chats, one cause:", timeout=15_000)
        expect(line).to_contain_text("glm-flash (zai) has no quota left")
        expect(page.locator("#rows > tr").first).to_have_class("group")
        expect(page.locator("#rows > tr.one")).to_have_count(2)
        line.get_by_role("link", name="only these").click()
        until_live(page)
        expect(page.locator("#rows > tr[id^=row-]")).to_have_count(2)
        page.goto("/")
        until_live(page)
        second.closed("done")
        expect(line).to_have_count(0, timeout=15_000)
        expect(page.locator("#rows > tr.one")).to_have_count(0)


def test_the_board_is_filtered_without_a_script(shared_server: Server, chromium: Browser) -> None:
    with reporter(shared_server, "plain-reader") as agent:
        agents.healthy_chat(agent, "calm-one")
        agents.over_budget_chat(agent, "loud-one")
        context = chromium.new_context(base_url=shared_server.origin, java_script_enabled=False)
        page = context.new_page()
        sign_in(page, shared_server, "vic")
        page.get_by_role("searchbox").fill("one")
        page.get_by_label("Agent").select_option("plain-reader")
        page.get_by_role("button", name="Apply").click()
        assert page.locator("#rows tr").count() == 2
        page.locator("#board-chips").get_by_role("link", name="Silent").click()
        assert page.locator("#rows tr").count() == 1
        assert "Chat loud-one" in page.locator("#rows").inner_text()
        context.close()


def test_nothing_moves_by_itself_where_motion_is_to_be_reduced(
    shared_server: Server, visit: Visit
) -> None:
    page = visit(shared_server, reduced_motion="reduce")
    until_live(page)
    assert page.evaluate("() => document.getAnimations().length") == 0
    assert page.evaluate("() => getComputedStyle(document.body).scrollBehavior") == "auto"
