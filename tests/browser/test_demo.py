"""The demo's incidents, recovered by clicking: nothing on the way is scripted for the page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.dom import until_live
from tests.browser.server import ROOT, Server

Visit = Callable[..., Page]
PACE = "0.1"
INCIDENT_MS = 90_000
RECOVERY_MS = 90_000


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the demo agents beside it, ten times as fast as for people."""
    folder = tmp_path_factory.mktemp("demo")
    server = Server(folder / "server")
    server.answer = server.seed(people={"ada": "operator", "bob": "operator"}, links=12)
    server.start()
    token = folder / "token"
    token.write_text(server.answer["tokens"]["agents"], "utf-8")
    agents = subprocess.Popen(
        [sys.executable, "-m", "ctxhealth.demo", "--url", server.origin, "--pace", PACE,
         "--token-file", str(token), "--folder", str(folder / "backups")],
        cwd=ROOT,
    )  # fmt: skip
    yield server
    agents.terminate()
    agents.wait(20)
    server.stop()


def open_incident(page: Page, agent: str, state: str) -> None:
    """From the board to the page of this agent's chat, once it is in that state."""
    until_live(page)
    row = page.locator("#rows tr", has_text=agent).filter(has_text=state)
    expect(row.first).to_be_visible(timeout=INCIDENT_MS)
    row.first.locator("a[href^='/chats/']").first.click()
    until_live(page)
    expect(page.locator("[data-headline]")).to_contain_text(f"{state}:")


def press(page: Page, key: str, reason: str) -> Locator:
    """Open the dialog by its key, give the reason, press; the receipt in the dialog."""
    page.keyboard.press(key)
    dialog = page.locator("dialog#dialog[open]")
    expect(dialog).to_be_visible()
    dialog.locator("[name=reason]").fill(reason)
    dialog.locator("button[type=submit]").click()
    receipt = dialog.locator("[id^=command-]")
    expect(receipt).to_be_visible(timeout=15_000)
    return receipt


def facts_of(page: Page) -> dict[str, Any]:
    """The open chat by the HTTP API, with the page's own session."""
    number = page.url.rstrip("/").rpartition("/")[2]
    answer: dict[str, Any] = page.request.get(f"/api/v1/chats/{number}").json()
    return answer


def region(page: Page, name: str) -> Locator:
    return page.locator(f"[id^=chat-][id$=-{name}]")


@pytest.mark.parametrize(
    ("agent", "state"),
    [("agent-zero-ops", "Stopped"), ("agent-zero-night", "Stopped"), ("qwenpaw-mail", "Silent")],
)
def test_a_fallback_shrinks_the_chat_answers_the_user_and_makes_it_healthy(
    demo: Server, visit: Visit, agent: str, state: str
) -> None:
    page = visit(demo)
    open_incident(page, agent, state)
    before = facts_of(page)
    expect(region(page, "headline")).to_contain_text("user waiting")
    receipt = press(page, "f", "saturated; the user waits")
    expect(receipt).to_contain_text("Succeeded", timeout=RECOVERY_MS)
    page.keyboard.press("Escape")
    expect(page.locator("[data-headline]")).to_contain_text("Healthy:", timeout=RECOVERY_MS)
    after = facts_of(page)
    forced = next(attempt for attempt in after["attempts"] if attempt["trigger"] == "forced")
    assert forced["outcome"] == "fell_back"
    assert forced["after"] < 0.85 * forced["before"]
    assert after["load"]["value"] < after["budget"]
    assert before["waiting_since"] is not None
    # Once answered the user may ask again: then somebody waits, but since later.
    assert after["waiting_since"] != before["waiting_since"]
    expect(region(page, "headline")).not_to_contain_text("user waiting")
    expect(region(page, "attempts")).to_contain_text("Fell back")
    expect(region(page, "commands")).to_contain_text("saturated; the user waits")


def test_clearing_the_latch_frees_the_rescue(demo: Server, visit: Visit) -> None:
    page = visit(demo)
    open_incident(page, "maka-desk", "Blocked")
    receipt = press(page, "c", "nothing was tried")
    expect(receipt).to_contain_text("Succeeded", timeout=RECOVERY_MS)
    page.keyboard.press("Escape")
    expect(page.locator("[data-headline]")).to_contain_text("Healthy:", timeout=RECOVERY_MS)
    latch = facts_of(page)["latches"][0]
    assert (latch["justified"], latch["cleared_how"]) == (False, "operator")


def test_where_the_latch_was_only_inferred_the_agent_refuses_and_the_fallback_helps(
    demo: Server, visit: Visit
) -> None:
    page = visit(demo)
    open_incident(page, "reasonix-dev", "Stalled")
    # Stalled comes first; a latch is only inferred after three more answered requests.
    expect(page.get_by_role("button", name="Clear latch…").first).to_be_enabled(timeout=INCIDENT_MS)
    receipt = press(page, "c", "it looks latched")
    expect(receipt).to_contain_text("Refused", timeout=RECOVERY_MS)
    page.keyboard.press("Escape")
    receipt = press(page, "f", "two timeouts, nobody tries again")
    expect(receipt).to_contain_text("Succeeded", timeout=RECOVERY_MS)
    page.keyboard.press("Escape")
    expect(page.locator("[data-headline]")).to_contain_text("Healthy:", timeout=RECOVERY_MS)
