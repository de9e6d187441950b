"""Incident review in a real browser: dragging, keys, links, paper, no script, live, axe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import agents
from tests.browser.server import Server
from tests.browser.test_axe import Scheme, Visit, violations

CASE_MS = 10_000


@pytest.fixture(scope="module")
def troubled(shared_server: Server) -> Iterator[Server]:
    """A chat whose utility model answers nothing until its agent stops, and one in trouble
    for the same cause."""
    token = shared_server.answer["tokens"]["agents"]
    with agents.reporter(shared_server.socket, token, "incident-agent") as agent:
        for name in ("first", "second"):
            stalls(agent, f"incident-{name}")
        yield shared_server


def stalls(agent: Any, name: str) -> Any:
    utility = {"model": "glm-flash", "provider": "zai", "window": 200_000}
    chat = agents.healthy_chat(
        agent, name, 120_000, utility=utility, reserve=8_000,
        trigger={"tokens": 140_000, "inclusive": False, "scope": "history"}, history_limit=140_000,
    )  # fmt: skip
    chat.history_snapshot(
        history=140_161,
        bulks=[{"id": "b1", "tokens": 9_000, "records": 3}],
        topics=[{"id": "t1", "tokens": 104_004, "messages": 40, "title": "Refactoring"}],
        current={"tokens": 27_157, "messages": 12},
    )
    turn = chat.turn_started()
    chat.message_added(role="user", tokens=200, text="go on", turn=turn)
    for _ in range(3):
        attempt = chat.compaction_started(before=140_261, scope="history")
        chat.compaction_finished(
            attempt, "stalled", before=140_261, after=140_261, scope="history",
            summarizer={**utility, "calls": 1, "input": 9_700, "error": "empty"},
        )  # fmt: skip
    chat.agent_stopped("unusable replies", count=5, limit=5)
    chat.turn_ended(turn, "stopped")
    assert agent.flush(20), agent.status()
    return chat


def opened(page: Page, name: str = "incident-first") -> Page:
    """The incident's page, by the list."""
    page.goto("/incidents/")
    page.locator("#incident-list a", has_text=f"Chat {name}").first.click()
    expect(page.locator("#scrub")).to_be_visible()
    return page


def seq(page: Page) -> int:
    return int(page.locator("#moment").get_attribute("data-seq") or 0)


def until_moved(page: Page, before: int) -> int:
    expect(page.locator("#moment")).not_to_have_attribute("data-seq", str(before), timeout=CASE_MS)
    return seq(page)


def test_the_scrubber_steps_by_key_and_by_button(troubled: Server, visit: Visit) -> None:
    page = opened(visit(troubled))
    start = seq(page)
    slider = page.locator("#scrub")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert until_moved(page, start) == start + 1
    page.keyboard.press("Home")
    first = until_moved(page, start + 1)
    expect(page.locator("#steps [data-step=before]")).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("PageDown")
    assert until_moved(page, first) > first
    page.keyboard.press("End")
    last = until_moved(page, seq(page)) if seq(page) != _last(page) else seq(page)
    assert last == _last(page)
    expect(page.locator("#moment")).to_contain_text("Stopped")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(rf"event {last}.*Stopped"))
    page.locator("#steps [data-step=before]").click()
    assert until_moved(page, last) == last - 1
    expect(page).to_have_url(re.compile(rf"[?&]at={last - 1}\b"))
    page.reload()
    assert seq(page) == last - 1


def _last(page: Page) -> int:
    return int(page.locator("#axis").get_attribute("data-to") or 0)


def test_dragging_shows_the_chat_as_of_any_moment_and_the_newest_wish_wins(
    troubled: Server, visit: Visit
) -> None:
    page = opened(visit(troubled))
    drawing = page.locator("svg.axis")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    assert box is not None
    y = box["y"] + 60
    page.mouse.move(box["x"] + box["width"] * 0.9, y)
    page.mouse.down()
    for step in range(30, -1, -1):
        page.mouse.move(box["x"] + box["width"] * 0.03 * step, y)
    page.mouse.up()
    expect(page.locator("#moment")).to_have_attribute("data-seq", "1", timeout=CASE_MS)
    expect(page.locator("#moment")).to_contain_text("server.connected")
    cursor = float((page.locator("[data-cursor]").get_attribute("x1") or "").rstrip("%"))
    assert cursor < 10


def test_a_mark_and_a_link_of_the_chain_lead_to_their_moment(
    troubled: Server, visit: Visit
) -> None:
    page = opened(visit(troubled))
    link = page.locator(".chain a[data-moment-seq]").last
    wanted = link.get_attribute("data-moment-seq") or ""
    link.click()
    expect(page.locator("#moment")).to_have_attribute("data-seq", wanted)
    mark = page.locator("svg.axis .ax-lane:nth-of-type(3) a[data-seq]").first
    page.evaluate("() => document.querySelector('svg.axis .ax-mark').scrollIntoView()")
    at = mark.get_attribute("data-seq") or ""
    mark.dispatch_event("click")
    expect(page.locator("#moment")).to_have_attribute("data-seq", at)
    expect(page.locator("#moment")).to_contain_text("compaction.")


def test_the_list_is_driven_by_keys(troubled: Server, visit: Visit) -> None:
    page = visit(troubled)
    page.keyboard.press("g")
    page.keyboard.press("i")
    expect(page).to_have_url(re.compile(r"/incidents/$"))
    expect(page.locator("#polled")).to_have_class("live on")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("#rows tr").first.locator("a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Incident")


def test_without_a_script_every_moment_is_a_link_away(troubled: Server, visit: Visit) -> None:
    page = opened_plain(visit, troubled)
    before = seq(page)
    page.get_by_role("link", name="Later event").click()
    assert seq(page) == before + 1
    page.get_by_role("link", name="First", exact=True).click()
    assert seq(page) == int(page.locator("#axis").get_attribute("data-from") or 0)
    expect(page.locator("#scrub")).to_be_hidden()
    page.locator("#table summary").click()
    page.get_by_role("link", name="Open the table").click()
    expect(page.locator("table tbody tr").first).to_be_visible()


def opened_plain(visit: Visit, server: Server) -> Page:
    page = visit(server, java_script_enabled=False)
    page.goto("/incidents/")
    page.locator("#incident-list a", has_text="Chat incident-first").first.click()
    expect(page.locator("#moment")).to_be_visible()
    return page


def test_notes_are_written_and_a_stretch_is_reviewed_from_the_chats_page(
    troubled: Server, visit: Visit
) -> None:
    page = opened(visit(troubled))
    page.locator("#note-text").fill("The **quota** was gone.")
    page.get_by_role("button", name="Add note").click()
    expect(page.locator(".note strong", has_text="quota")).to_be_visible()
    page.locator(".crumbs a").last.click()
    plot = page.locator("#timeline .u-over")
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 40, steps=5)
    page.mouse.up()
    link = page.locator("[data-review]")
    expect(link).to_have_attribute("href", re.compile(r"since=\d+&until=\d+"))
    link.click()
    page.get_by_placeholder("What is it about?").fill("A look at the middle")
    page.get_by_role("button", name="Keep as a review").click()
    expect(page.locator("h1")).to_contain_text("Review")
    expect(page.locator(".say")).to_have_text("A look at the middle")


def test_a_list_that_is_open_brings_new_incidents_by_itself(troubled: Server, visit: Visit) -> None:
    page = visit(troubled)
    page.goto("/incidents/?q=incident-late")
    expect(page.locator("#incident-list")).to_contain_text("No incident fits")
    page.locator("h1").hover()
    token = troubled.answer["tokens"]["agents"]
    with agents.reporter(troubled.socket, token, "late-agent") as agent:
        stalls(agent, "incident-late")
        expect(page.locator("#rows")).to_contain_text("Chat incident-late", timeout=20_000)
    expect(page.locator("#polled")).to_have_class("live on")


def test_an_open_incident_goes_on_before_the_eyes_and_leaves_the_axis_alone(
    troubled: Server, visit: Visit
) -> None:
    token = troubled.answer["tokens"]["agents"]
    with agents.reporter(troubled.socket, token, "going-agent") as agent:
        chat = stalls(agent, "incident-going")
        page = opened(visit(troubled), "incident-going")
        page.locator("h1").hover()
        before, drawn = seq(page), page.locator("svg.axis").inner_html()
        agents.answered_turn(chat, 121_000)
        expect(page.locator("#grown")).to_contain_text("Newer events", timeout=20_000)
        assert seq(page) == before and page.locator("svg.axis").inner_html() == drawn
        page.get_by_role("link", name="Show them").click()
        expect(page.locator("#grown")).to_have_count(0)
        assert _last(page) > before


def test_a_server_that_does_not_answer_is_said_and_the_next_move_asks_again(
    troubled: Server, visit: Visit
) -> None:
    page = opened(visit(troubled))
    page.route("**/moment/**", lambda route: route.abort())
    page.locator("#scrub").focus()
    page.keyboard.press("End")
    expect(page.locator("#trouble")).to_contain_text("did not answer")
    page.unroute("**/moment/**")
    before = seq(page)
    page.keyboard.press("Home")
    until_moved(page, before)
    expect(page.locator("#trouble")).to_be_hidden()


def test_the_link_is_copied_with_its_moment(troubled: Server, visit: Visit) -> None:
    page = opened(visit(troubled, permissions=["clipboard-read", "clipboard-write"]))
    page.locator("#scrub").focus()
    page.keyboard.press("End")
    expect(page).to_have_url(re.compile(r"at=\d+"))
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Link copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == page.url.split("#")[0]


def test_dragging_shifts_nothing_on_the_page(troubled: Server, visit: Visit) -> None:
    page = opened(visit(troubled))
    page.evaluate(
        "() => { window.shifts = 0; new PerformanceObserver((list) => { for (const e of "
        "list.getEntries()) window.shifts += e.value; }).observe({type: 'layout-shift'}); }"
    )
    top = _top(page.locator("#axis"))
    page.locator("#scrub").focus()
    for key in ("Home", "PageDown", "PageDown", "End", "PageUp"):
        before = seq(page)
        page.keyboard.press(key)
        until_moved(page, before)
    assert page.evaluate("() => window.shifts") < 0.1
    assert _top(page.locator("#axis")) == top


def _top(box: Locator) -> float:
    top: float = box.evaluate("(e) => e.getBoundingClientRect().top + scrollY")
    return top


def test_on_paper_it_is_black_on_white_with_its_charts(
    troubled: Server, visit: Visit, tmp_path: Path
) -> None:
    page = opened(visit(troubled, color_scheme="dark"))
    page.emulate_media(media="print")
    for gone in ("header.top", ".exports", "#steps", "#scrub", ".note-form", "#owner"):
        expect(page.locator(gone).first).to_be_hidden()
    for kept in ("svg.axis", "#moment svg.strip", ".chain", ".figures", "#notes"):
        expect(page.locator(kept).first).to_be_visible()
    colours = page.evaluate(
        "() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; }"
    )
    assert colours == ["rgb(255, 255, 255)", "rgb(20, 23, 26)"]
    data = page.pdf(path=tmp_path / "incident.pdf", format="A4")
    assert data.startswith(b"%PDF") and len(data) > 20_000


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_incident_pages_have_no_violation(
    troubled: Server, visit: Visit, scheme: Scheme, width: int
) -> None:
    page = visit(troubled, color_scheme=scheme, viewport={"width": width, "height": 900})
    found: dict[str, list[str]] = {}
    page.goto("/incidents/")
    found["list"] = violations(page)
    assert _overflow(page) <= 0
    page.locator("#incident-list a[href^='/incidents/']").first.click()
    expect(page.locator("#scrub")).to_be_visible()
    page.locator("#table summary").click()
    expect(page.locator("#table tbody tr").first).to_be_visible()
    found["incident"] = violations(page)
    assert _overflow(page) <= 0
    chat = page.locator(".crumbs a").last.get_attribute("href")
    for path in (f"{chat}review/", f"{chat}review/table/", "/incidents/?q=nothing-at-all",
                 "/incidents/?show=reviews"):  # fmt: skip
        page.goto(path)
        found[path] = violations(page)
        assert _overflow(page) <= 0, path
    assert {path: each for path, each in found.items() if each} == {}


def _overflow(page: Page) -> int:
    """Pixels that the page is wider than its window."""
    wide: int = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return wide
