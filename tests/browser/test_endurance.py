"""A page that stays open: it does not shift, grow or complain, and comes back from silence."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace

from playwright.sync_api import Browser, Page, expect

from benchmarks.endurance import Plan, Tab, Work
from tests.browser import agents
from tests.browser.conftest import sign_in
from tests.browser.dom import until_live
from tests.browser.proxy import Wire
from tests.browser.server import Server

Visit = Callable[..., Page]
LOOKS = 4
# Nodes of the list of events that are no events: one blank behind each, and no more.
LEFT_OVER = """
() => { const list = document.querySelector("#events .events");
  return list ? list.childNodes.length - 2 * list.querySelectorAll(".ev").length : 0; }
"""
LOOK_MS = 2_000


def grown(tab: Tab, what: str) -> float:
    """The least of the later looks, as a share of the most of the earlier ones: what waits for
    its collection comes and goes."""
    seen = [values[what] for _, values in tab.samples]
    return min(seen[LOOKS // 2 :]) / max(seen[: LOOKS // 2])


def test_busy_pages_neither_shift_nor_grow_nor_complain(
    launch: Callable[..., Server], chromium: Browser
) -> None:
    server = launch()
    token = server.answer["tokens"]["agents"]
    plan = Plan(60.0, rate=150, chats=30, lived=60)
    with (
        closing(Wire(server.port)) as wire,
        agents.reporter(server.socket, token, "endurance") as agent,
        Work(agent, plan),
    ):
        page = chromium.new_page(base_url=server.origin)
        sign_in(page, server, "ada")
        signed_in = page.context.storage_state()
        for name, path in (("board", "/"), ("chat", "/chats/1/")):
            tab = Tab(chromium, wire, signed_in, name, path)
            tab.settled()
            for look in range(LOOKS):
                tab.page.wait_for_timeout(LOOK_MS)
                tab.sample(look)
            assert grown(tab, "DOM nodes") < 1.2, tab.samples
            assert grown(tab, "JS heap") < 1.3, tab.samples
            assert tab.worst_shift() < (0.01 if name == "board" else 0.05)
            assert tab.complaints == []
            assert tab.page.evaluate("() => ctxReports") == []
            assert tab.page.evaluate(LEFT_OVER) < 5
            tab.page.context.close()
        page.context.close()


def test_a_socket_that_died_in_silence_is_said_and_replaced(
    shared_server: Server, visit: Visit
) -> None:
    token = shared_server.answer["tokens"]["agents"]
    with (
        closing(Wire(shared_server.port)) as wire,
        agents.reporter(shared_server.socket, token, "laptop") as agent,
    ):
        chat = agents.healthy_chat(agent, "asleep")
        behind = SimpleNamespace(origin=wire.origin, answer=shared_server.answer)
        page = visit(behind, path="/?q=asleep")
        page.clock.install()
        page.reload()
        until_live(page)
        wire.fall_silent()
        agents.answered_turn(chat, 77_123)
        page.clock.fast_forward(46_000)  # the lid was closed for that long
        badge = page.locator("#live")
        expect(badge).to_contain_text("stale since", timeout=5_000)
        expect(page.locator("#alarm")).to_have_text("Live updates stopped.")
        assert page.locator("#rows").get_by_text("77,123").count() == 0
        wire.heal()
        page.clock.fast_forward(16_000)
        expect(badge).to_have_text("live", timeout=20_000)
        expect(page.locator("#rows")).to_contain_text("77,123", timeout=10_000)
