"""The board and a chat in a browser: density, keys, calm, and life without a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from ctxhealth.client import Reporter
from tests.browser import agents
from tests.browser.conftest import sign_in
from tests.browser.dom import until_live
from tests.browser.server import Server

Visit = Callable[..., Page]
CHATS = 46


class Fleet:
    """One agent with many small chats, and one chat in trouble."""

    def __init__(self, server: Server, agent: Reporter) -> None:
        self.server = server
        self.agent = agent
        self.troubled = agents.over_budget_chat(agent, "in trouble")
        self.calm = [self._chat(number) for number in range(CHATS)]
        assert agent.flush(20)

    def _chat(self, number: int) -> Any:
        title = f"Chat {number:02d}"
        chat = self.agent.chat(f"b{number}", title=title, model="model-b", window=agents.WINDOW)
        request = chat.request_sent(local=20_000 + number * 1_000)
        usage = {"dialect": "openai", "input": 20_000 + number * 1_000, "output": 9}
        chat.model_replied(request, usage=usage, content={"text_chars": 9}, finish="stop")
        return chat


@pytest.fixture(scope="module")
def fleet(shared_server: Server) -> Iterator[Fleet]:
    token = shared_server.answer["tokens"]["agents"]
    with agents.reporter(shared_server.socket, token, "board-agent") as agent:
        agent.on("compact_fallback")(lambda command: None)
        agent.reconnect()
        assert agent.wait_connected(20)
        yield Fleet(shared_server, agent)


def rows(page: Page) -> list[str]:
    return page.locator("#rows tr:not(.more) td:nth-child(2) a").all_inner_texts()


def test_forty_chats_stand_on_a_laptop_screen(fleet: Fleet, visit: Visit) -> None:
    page = visit(fleet.server, path="/?agent=board-agent", viewport={"width": 1440, "height": 900})
    until_live(page)
    seen = page.evaluate(
        "() => [...document.querySelectorAll('#rows tr')].filter((row) => row"
        ".getBoundingClientRect().bottom <= innerHeight - 32).length"  # the line of `peek`
    )
    assert seen >= 40


def test_a_chat_is_found_opened_and_its_dialog_reached_without_a_mouse(
    fleet: Fleet, visit: Visit
) -> None:
    page = visit(fleet.server, path="/?agent=board-agent")
    until_live(page)
    page.keyboard.press("/")
    page.keyboard.type("trouble")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{fleet.server.origin}/?q=trouble&agent=board-agent")
    until_live(page)
    page.keyboard.press("j")
    page.keyboard.press("f")
    expect(page.locator("#dialog[open] #dialog-title")).to_contain_text("Force fallback")
    page.keyboard.press("Escape")
    expect(page.locator("#dialog[open]")).to_have_count(0)
    expect(page.locator("[data-key=f]:focus")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Chat in trouble")
    expect(page.locator("#chat-commands, [id$='-commands']").first).to_contain_text("Nobody")
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page).to_have_url(f"{fleet.server.origin}/agents/")


def test_rows_do_not_move_under_the_pointer(fleet: Fleet, visit: Visit) -> None:
    page = visit(fleet.server, path="/?agent=board-agent")
    until_live(page)
    last = rows(page)[-1]
    page.locator("#rows tr").nth(5).hover()
    chat = next(c for n, c in enumerate(fleet.calm) if f"Chat {n:02d}" == last)
    chat.turn_started()  # its user waits now, so it belongs further up
    assert fleet.agent.flush(20)
    expect(page.locator("#resort")).to_be_visible(timeout=10_000)
    assert rows(page)[-1] == last
    page.mouse.move(5, 5)
    expect(page.locator("#resort")).to_be_hidden()
    assert rows(page)[-1] != last
    assert rows(page).index(last) <= 2


def test_a_head_sorts_the_board_and_rows_follow_its_order_as_they_change(
    fleet: Fleet, visit: Visit
) -> None:
    page = visit(fleet.server, path="/?agent=board-agent")
    until_live(page)
    page.get_by_role("link", name="Load / usable").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{fleet.server.origin}/?agent=board-agent&sort=load")
    until_live(page)
    head = page.get_by_role("columnheader", name="Load / usable")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert rows(page)[:2] == ["Chat in trouble", f"Chat {CHATS - 1:02d}"]
    request = fleet.calm[7].request_sent(local=90_000)
    usage = {"dialect": "openai", "input": 90_000, "output": 9}
    fleet.calm[7].model_replied(request, usage=usage, content={"text_chars": 9}, finish="stop")
    assert fleet.agent.flush(20)
    expect(page.locator("#rows tr").nth(1)).to_contain_text("Chat 07", timeout=10_000)
    page.get_by_role("link", name="Load / usable").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert rows(page)[-2:] == ["Chat 07", "Chat in trouble"]


def test_what_is_critical_is_said_across_the_row_that_a_reader_gets_in_full(
    fleet: Fleet, visit: Visit
) -> None:
    page = visit(fleet.server, path="/?q=trouble", viewport={"width": 1440, "height": 900})
    until_live(page)
    row = page.locator("#rows tr", has_text="Chat in trouble").first
    sentence = row.locator(".say").inner_text()
    assert "Force a fallback" in sentence
    assert row.get_by_role("cell", name=sentence).count() == 1
    title, said = (row.locator(each).bounding_box() for each in ("td:nth-child(2) a", ".say"))
    assert title is not None and said is not None
    assert said["y"] >= title["y"] + title["height"] - 4
    assert said["height"] < 36
    assert said["width"] > 900
    assert advice_is_cut(row) is False


@pytest.mark.parametrize("width", [390, 768, 1024, 1440])
def test_the_advice_of_a_critical_chat_is_readable_however_long_its_cause(
    fleet: Fleet, visit: Visit, width: int
) -> None:
    page = visit(fleet.server, path="/?q=trouble", viewport={"width": width, "height": 900})
    row = page.locator("#rows tr", has_text="Chat in trouble").first
    row.locator(".say").evaluate("box => box.firstChild.data += ' and so on'.repeat(90)")
    assert "Force a fallback" in row.locator(".say b").inner_text()
    assert advice_is_cut(row) is False


def advice_is_cut(row: Locator) -> bool:
    """Whether part of it stands outside its box or its row."""
    cut: bool = row.locator(".say b").evaluate(
        "advice => { const at = advice.getBoundingClientRect();"
        " const row = advice.closest('tr').getBoundingClientRect();"
        " return advice.scrollWidth > advice.clientWidth || at.bottom > row.bottom + 0.5"
        " || at.right > innerWidth; }"
    )
    return cut


def test_every_page_is_in_reach_on_a_phone(fleet: Fleet, visit: Visit) -> None:
    page = visit(fleet.server, "adm", viewport={"width": 390, "height": 844})
    until_live(page)
    links = page.locator("header nav a").evaluate_all(
        "links => links.map((link) => [link.getBoundingClientRect(), link.textContent.trim()])"
        ".filter(([box]) => box.right > innerWidth - 8 || box.height > 40).map(([, name]) => name)"
    )
    assert page.locator("header nav a").count() == 7
    assert links == []


def test_what_a_reader_opened_stays_open_while_the_page_lives(fleet: Fleet, visit: Visit) -> None:
    page = visit(fleet.server, path="/?q=trouble")
    page.locator("#rows a", has_text="Chat in trouble").first.click()
    until_live(page)
    page.locator(".prov > summary").click()
    sum_before = page.locator(".window .sum").inner_text()
    request = fleet.troubled.request_sent(local=198_000)
    usage = {"dialect": "openai", "input": 198_400, "output": 5}
    fleet.troubled.model_replied(request, usage=usage, content={"text_chars": 5}, finish="stop")
    assert fleet.agent.flush(20)
    expect(page.locator(".window .sum")).not_to_have_text(sum_before, timeout=10_000)
    expect(page.locator(".prov")).to_have_attribute("open", "")


def test_the_timeline_is_drawn_and_its_table_opens(fleet: Fleet, visit: Visit) -> None:
    page = visit(fleet.server, path="/?q=trouble")
    page.locator("#rows a", has_text="Chat in trouble").first.click()
    until_live(page)
    expect(page.locator("#timeline canvas")).to_be_visible()
    page.locator("#timeline-table-box > summary").click()
    expect(page.locator("#timeline-table")).to_contain_text("199,000")


def test_an_event_opens_to_its_raw_json(fleet: Fleet, visit: Visit) -> None:
    page = visit(fleet.server, path="/?q=trouble")
    page.locator("#rows a", has_text="Chat in trouble").first.click()
    page.locator(".ev", has_text="model.replied").first.locator("summary").click()
    expect(page.locator(".ev[open] pre")).to_contain_text('"dialect": "openai"')


def test_pages_are_read_without_a_script(fleet: Fleet, chromium: Browser) -> None:
    context = chromium.new_context(base_url=fleet.server.origin, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, fleet.server, "vic")
    page.goto("/?q=trouble")
    page.locator("#rows a", has_text="Chat in trouble").first.click()
    assert "Force a fallback" in page.locator("[data-headline]").inner_text()
    assert page.locator("svg.strip-large").count() == 1
    page.locator("#timeline-table-box > summary").click()
    page.locator("#timeline-table a").click()
    assert "199,000" in page.locator("main").inner_text()
    context.close()


@pytest.mark.parametrize("path", ["/", "/agents/", "/audit/", "/settings/tokens/", "chat"])
def test_nothing_is_wider_than_a_phone(fleet: Fleet, visit: Visit, path: str) -> None:
    page = visit(fleet.server, "adm", viewport={"width": 390, "height": 844})
    if path == "chat":
        page.goto("/?q=trouble")
        path = page.locator("#rows a", has_text="Chat in trouble").first.get_attribute("href") or ""
    page.goto(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [390, 1440])
def test_names_without_end_and_without_a_letter_break_no_page(
    shared_server: Server, visit: Visit, width: int
) -> None:
    token = shared_server.answer["tokens"]["agents"]
    with agents.reporter(shared_server.socket, token, f"endless{width}-{'A' * 120}") as agent:
        agent.chat("blank", title=" \n ", model="m" * 190).request_sent(local=9_000)
        assert agent.flush(20)
    page = visit(
        shared_server, path=f"/?q=endless{width}", viewport={"width": width, "height": 800}
    )
    page.get_by_role("link", name="blank", exact=True).click()
    expect(page.locator("h1")).to_have_text("blank")
    page.wait_for_load_state()
    outside = page.evaluate(
        "[...document.querySelectorAll('body *')].map((e) => [e.getBoundingClientRect(), e])"
        ".filter(([box]) => box.width && box.right > innerWidth + 1)"
        ".map(([, e]) => `${e.tagName} ${e.className.baseVal ?? e.className} ${e.id}`)"
    )
    assert outside == []
    told = page.locator(".crumbs bdi").evaluate("name => getComputedStyle(name).unicodeBidi")
    assert told == "isolate"
