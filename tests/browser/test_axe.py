"""Every page and dialog by axe, light and dark: no violation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser import agents
from tests.browser.dom import until_live
from tests.browser.server import Server

AXE = (Path(__file__).parent / "vendor" / "axe-core-4.14.1.min.js").read_text("utf-8")
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS = (1440, 390)
Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def peopled(shared_server: Server) -> Iterator[Server]:
    """Chats in several states: healthy, in trouble, latched, with attempts and a sub-agent."""
    token = shared_server.answer["tokens"]["agents"]
    with agents.reporter(shared_server.socket, token, "axe-agent") as agent:
        agent.on("compact_fallback")(lambda command: None)
        agent.on("clear_latch")(lambda command: None)
        agent.reconnect()
        assert agent.wait_connected(20)
        first = agents.over_budget_chat(agent, "troubled")
        first.latch_set("l1", "turn", kind="structural", reason="nothing to fold", tokens=150_000)
        attempt = first.compaction_started(before=150_000, scope="prompt")
        first.compaction_finished(attempt, "failed", before=150_000, after=150_000, scope="prompt")
        first.history_snapshot(
            system=4_000,
            tools=12_000,
            bulks=[{"id": "b1", "tokens": 9_000, "records": 3}],
            topics=[{"id": "t1", "tokens": 60_000, "messages": 40, "title": "Refactoring"}],
            current={"tokens": 50_000, "messages": 12},
        )
        agents.healthy_chat(agent, "fine")
        agents.healthy_chat(agent, "child", parent="troubled")
        assert agent.flush(20)
        yield shared_server


def violations(page: Page) -> list[str]:
    page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def troubled_path(page: Page) -> str:
    """The path of the troubled chat's page, from its row."""
    link = page.locator("#rows a[href^='/chats/']", has_text="Chat troubled").first
    return link.get_attribute("href") or ""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_has_no_violation(
    peopled: Server, visit: Visit, scheme: Scheme, width: int
) -> None:
    page = visit(peopled, "adm", color_scheme=scheme, viewport={"width": width, "height": 900})
    until_live(page)
    troubled = troubled_path(page)
    found: dict[str, list[str]] = {}
    for path in ("/", "/?q=nothing-fits", troubled, f"{troubled}events/", f"{troubled}timeline/",
                 f"{troubled}events/1/", "/agents/", "/agents/summarizers/", "/audit/", "/import/",
                 "/oncall/", "/incidents/", "/settings/tokens/", "/settings/people/",
                 "/settings/thresholds/", "/settings/windows/", "/settings/retention/",
                 "/no-such-page/"):  # fmt: skip
        page.goto(path)
        if page.locator("#live").count():
            until_live(page)
        found[path] = violations(page)
    assert {path: each for path, each in found.items() if each} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_dialog_has_no_violation(peopled: Server, visit: Visit, scheme: Scheme) -> None:
    page = visit(peopled, color_scheme=scheme)
    until_live(page)
    page.goto(troubled_path(page))
    until_live(page)
    found: dict[str, list[str]] = {}
    for key in ("f", "c", "?"):
        page.keyboard.press(key)
        expect(page.locator("dialog[open]")).to_be_visible()
        found[key] = violations(page)
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
    assert {key: each for key, each in found.items() if each} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_way_in_has_no_violation(peopled: Server, visit: Visit, scheme: Scheme) -> None:
    page = visit(peopled, color_scheme=scheme)
    link = peopled.answer["logins"]["ada"].pop()
    page.context.clear_cookies()
    found: dict[str, list[str]] = {}
    for path in ("/login/", link, "/login/once/never-made/"):
        page.goto(path)
        found[path] = violations(page)
    assert {path: each for path, each in found.items() if each} == {}
