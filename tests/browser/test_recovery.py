"""Pressing in a browser: what happens once, later, never, and what the page says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Locator, Page, expect

from ctxhealth.client import Refused, Reporter
from tests.browser import agents
from tests.browser.dom import until_live
from tests.browser.proxy import Wire
from tests.browser.server import Server

Visit = Callable[..., Page]
BACKUP = "backups/c1-before.json"


@dataclass
class Hands:
    """An agent with one chat in trouble that notes what it is asked to do."""

    reporter: Reporter
    server: Server
    chat: Any
    did: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.did]

    def fallback(self, command: Any) -> dict[str, Any]:
        """Compacts, as an agent reports it, and gives the backup's name."""
        self.did.append((command.kind, dict(command.args)))
        attempt = self.chat.compaction_started(before=199_000, scope="prompt", trigger="forced")
        self.chat.compaction_finished(
            attempt, "fell back", before=199_000, after=90_000, scope="prompt",
            steps=[{"step": "fallback", "before": 199_000, "after": 90_000, "calls": 0}],
        )  # fmt: skip
        return {"before": 199_000, "after": 90_000, "backup": BACKUP}

    def go_on(self, command: Any) -> dict[str, Any]:
        self.did.append((command.kind, dict(command.args)))
        agents.answered_turn(self.chat, 92_000, text="and now?")
        return {}

    def put_back(self, command: Any) -> dict[str, Any]:
        self.did.append((command.kind, dict(command.args)))
        return {"before": 90_000, "after": 199_000}


@contextmanager
def hands(server: Server, name: str, socket: str = "", **more: Any) -> Iterator[Hands]:
    """``more`` goes to the registration of the fallback."""
    token = server.answer["tokens"]["agents"]
    with agents.reporter(socket or server.socket, token, name) as reporter:
        made = Hands(reporter, server, None)
        reporter.on("compact_fallback", lambda command: made.fallback(command), **more)
        reporter.on("continue", lambda command: made.go_on(command))
        reporter.on("restore_backup", lambda command: made.put_back(command))
        made.chat = agents.over_budget_chat(reporter, name)
        reporter.reconnect()
        assert reporter.wait_connected(20)
        yield made


def open_chat(visit: Visit, server: Server, name: str, who: str = "ada") -> Page:
    page = visit(server, who, f"/?q={name}")
    page.locator("#rows a[href^='/chats/']").first.click()
    until_live(page)
    return page


def dialog_by(page: Page, key: str) -> Locator:
    """Once the button can be pressed: a command before it may just have ended."""
    expect(page.locator(f"a[data-key={key}]").first).to_be_visible(timeout=10_000)
    page.keyboard.press(key)
    dialog = page.locator("dialog#dialog[open]")
    expect(dialog).to_be_visible()
    return dialog


def press(page: Page, key: str = "f", *, then: bool = False) -> Locator:
    """The receipt in the dialog after the press."""
    dialog = dialog_by(page, key)
    box = dialog.locator("[name=then]")
    if box.count():
        box.set_checked(then)
    dialog.locator("button[type=submit]").click()
    receipt = dialog.locator("[id^=command-]")
    expect(receipt).to_be_visible(timeout=15_000)
    return receipt


def commands(page: Page) -> Locator:
    return page.locator("[id$=-commands] .receipts > li")


def test_a_double_click_is_one_command(shared_server: Server, visit: Visit) -> None:
    with hands(shared_server, "twice") as agent:
        page = open_chat(visit, shared_server, "twice")
        dialog = dialog_by(page, "f")
        dialog.locator("[name=then]").uncheck()
        dialog.locator("button[type=submit]").dblclick()
        expect(dialog.locator("[id^=command-]")).to_contain_text("Succeeded", timeout=20_000)
        expect(commands(page)).to_have_count(1, timeout=10_000)
        assert agent.kinds() == ["compact_fallback"]


def test_the_second_operator_is_shown_the_first_ones_receipt(
    shared_server: Server, visit: Visit
) -> None:
    with hands(shared_server, "two", safe_point=True) as agent:
        agent.chat.request_sent(local=10_000)  # keeps the command waiting
        assert agent.reporter.flush(20)
        first = open_chat(visit, shared_server, "two")
        second = open_chat(visit, shared_server, "two", "adm")
        late = dialog_by(second, "f")
        expect(press(first)).to_contain_text("waits for a safe point", timeout=15_000)
        late.locator("button[type=submit]").click()
        expect(late.get_by_role("alert")).to_contain_text("Somebody was first")
        expect(late.locator("[id^=command-]")).to_contain_text("by ada")
        second.keyboard.press("Escape")
        expect(second.locator("#underway")).to_contain_text("Force fallback by ada")
        button = second.get_by_role("button", name="Force fallback")
        expect(button).to_have_attribute("aria-disabled", "true")


def test_an_agent_that_is_away_is_said_before_the_press_and_nothing_waits_for_it(
    shared_server: Server, visit: Visit
) -> None:
    with hands(shared_server, "away") as agent:
        page = open_chat(visit, shared_server, "away")
        expect(page.get_by_role("button", name="Force fallback…")).to_be_visible()
        agent.reporter.close()
        button = page.get_by_role("button", name="Force fallback", exact=True)
        expect(button).to_have_attribute("aria-disabled", "true", timeout=10_000)
        expect(button).to_have_accessible_description(
            "The agent is not connected: nothing can reach it until it is back."
        )
        page.keyboard.press("f")
        expect(page.locator("dialog[open]")).to_have_count(0)
        expect(button).to_be_focused()
        expect(commands(page)).to_have_count(0)


def test_what_an_agent_does_not_offer_is_said_before_the_press(
    shared_server: Server, visit: Visit
) -> None:
    with hands(shared_server, "cannot") as agent:
        agent.chat.latch_set("l1", "turn", kind="structural", reason="nothing to fold")
        assert agent.reporter.flush(20)
        page = open_chat(visit, shared_server, "cannot")
        button = page.get_by_role("button", name="Clear latch")
        expect(button).to_have_accessible_description("This agent does not offer it.")
        page.keyboard.press("c")
        expect(page.locator("dialog[open]")).to_have_count(0)


def test_a_waiting_command_names_what_for_and_once_cancelled_never_runs(
    shared_server: Server, visit: Visit
) -> None:
    with hands(shared_server, "changed-my-mind", safe_point=True) as agent:
        request = agent.chat.request_sent(local=10_000)
        assert agent.reporter.flush(20)
        page = open_chat(visit, shared_server, "changed-my-mind")
        receipt = press(page)
        expect(receipt).to_contain_text("waits for a safe point: model call", timeout=15_000)
        receipt.get_by_role("button", name="Cancel").click()
        expect(receipt).to_contain_text("Cancelled", timeout=15_000)
        agent.chat.model_replied(request, usage={"dialect": "openai", "input": 10_000})
        agent.chat.note("the safe point has come")
        assert agent.reporter.flush(20)
        page.keyboard.press("Escape")
        # The chat goes on: a press after it runs, the cancelled one is not among what ran.
        expect(press(page)).to_contain_text("Succeeded", timeout=20_000)
        assert agent.kinds() == ["compact_fallback"]


def test_a_command_that_does_not_arrive_in_time_expires_and_is_never_sent_late(
    launch: Callable[..., Server], visit: Visit
) -> None:
    server = launch()
    wire = Wire(server.port)
    with hands(server, "lost", f"ws://127.0.0.1:{wire.port}") as agent:
        page = open_chat(visit, server, "lost")
        wire.fall_silent()
        receipt = press(page)
        server.seed(people={}, tokens={}, overdue=True)
        expect(receipt).to_contain_text("Expired", timeout=20_000)
        expect(receipt).to_contain_text("did not reach the agent in time and will not run")
        wire.heal()
        agent.reporter.reconnect()
        assert agent.reporter.wait_connected(30)
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Force fallback…")).to_be_visible(timeout=20_000)
        # What it is asked now, it does; what expired is not among it.
        expect(press(page)).to_contain_text("Succeeded", timeout=20_000)
        assert agent.kinds() == ["compact_fallback"]
    wire.close()


def test_undo_restores_the_backup_and_is_gone_after_the_next_compaction(
    shared_server: Server, visit: Visit
) -> None:
    with hands(shared_server, "undone") as agent:
        page = open_chat(visit, shared_server, "undone")
        receipt = press(page)
        expect(receipt).to_contain_text(BACKUP, timeout=20_000)
        expect(receipt).to_contain_text("199,000 → 90,000 tokens, 55% freed")
        undo = receipt.get_by_role("button", name="Undo…")
        command = (receipt.get_attribute("id") or "").removeprefix("command-")
        undo.click()
        dialog = page.locator("dialog#dialog[open]")
        expect(dialog.locator("#dialog-title")).to_contain_text("Restore backup")
        dialog.locator("button[type=submit]").click()
        expect(dialog.locator("[id^=command-]")).to_contain_text("Succeeded", timeout=20_000)
        kind, args = agent.did[-1]
        assert (kind, args["command"]) == ("restore_backup", command)
        page.keyboard.press("Escape")
        expect(press(page)).to_contain_text("Undo", timeout=20_000)
        page.keyboard.press("Escape")
        undo = page.locator("[id$=-commands]").get_by_role("button", name="Undo…")
        expect(undo).to_have_count(1)
        attempt = agent.chat.compaction_started(before=90_000, scope="prompt")
        agent.chat.compaction_finished(attempt, "ok", before=90_000, after=60_000, scope="prompt")
        expect(undo).to_have_count(0, timeout=10_000)


def test_then_continue_answers_the_waiting_user(shared_server: Server, visit: Visit) -> None:
    with hands(shared_server, "goes-on") as agent:
        page = open_chat(visit, shared_server, "goes-on")
        expect(page.locator(".headline")).to_contain_text("user waiting")
        dialog = dialog_by(page, "f")
        expect(dialog.locator("[name=then]")).to_be_checked()
        dialog.locator("button[type=submit]").click()
        receipt = dialog.locator("[id^=command-]").first
        expect(receipt.locator("article")).to_have_count(2, timeout=20_000)
        expect(receipt.locator("article").nth(1)).to_contain_text("Succeeded", timeout=20_000)
        page.keyboard.press("Escape")
        expect(page.locator(".headline")).not_to_contain_text("user waiting", timeout=10_000)
        assert agent.kinds() == ["compact_fallback", "continue"]


def test_a_refusal_says_why_in_the_agents_words(shared_server: Server, visit: Visit) -> None:
    with hands(shared_server, "refuses") as agent:

        def refuse(command: Any) -> dict[str, Any]:
            raise Refused("busy", "A migration holds the history until 22:00.")

        agent.reporter.on("compact_fallback", refuse)
        page = open_chat(visit, shared_server, "refuses")
        receipt = press(page)
        expect(receipt).to_contain_text("Refused", timeout=20_000)
        expect(receipt).to_contain_text("A migration holds the history until 22:00.")


def test_a_read_only_server_offers_no_action_anywhere(
    launch: Callable[..., Server], visit: Visit
) -> None:
    server = launch()
    server.stop()
    server.environment["CTXHEALTH_READ_ONLY"] = "1"
    server.start()
    with hands(server, "looked-at"):
        page = visit(server)
        for _ in ("the board", "the chat"):
            until_live(page)
            expect(page.get_by_text("Chat looked-at").first).to_be_visible()
            page.keyboard.press("f")
            assert page.locator("[data-dialog], [data-key], .acts").count() == 0
            expect(page.locator("dialog[open]")).to_have_count(0)
            page.goto("/chats/1/")
