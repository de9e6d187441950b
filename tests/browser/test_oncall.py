"""The page for those on call in a real browser: it looks again, and not under anybody's hands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import agents
from tests.browser.server import Server
from tests.browser.test_axe import SCHEMES, Scheme, violations

Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def troubled(shared_server: Server) -> Iterator[Server]:
    token = shared_server.answer["tokens"]["agents"]
    with agents.reporter(shared_server.socket, token, "oncall-agent") as agent:
        agents.over_budget_chat(agent, "needs-somebody")
        assert agent.flush(20)
        yield shared_server


def test_taking_silencing_and_handing_over_a_shift(troubled: Server, visit: Visit) -> None:
    page = visit(troubled, "ada", "/oncall/")
    cause = page.locator(".cause", has_text="needs-somebody")
    cause.get_by_role("button", name="Take it").click()
    expect(cause).to_contain_text("taken by ada")
    cause.locator("summary").click()
    cause.get_by_label("because").fill("the provider works on it")
    # The page looks again by itself, but not while somebody fills this in.
    page.evaluate(
        "htmx.ajax('GET', '/oncall/now/', {source: '#oncall-now', target: '#oncall-now',"
        " swap: 'morph:outerHTML'})"
    )
    expect(cause.get_by_label("because")).to_have_value("the provider works on it")
    cause.get_by_role("button", name="Silence", exact=True).click()
    expect(cause).to_contain_text("silent until")
    page.get_by_role("link", name="Begin with this shift").click()
    expect(page.locator("#handover-text")).to_have_value(re.compile("Silences that expire"))
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#handover .markdown")).to_contain_text("Owner: ada.")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_has_no_violation(troubled: Server, visit: Visit, scheme: Scheme) -> None:
    page = visit(troubled, "ada", "/oncall/?draft=1", color_scheme=scheme)
    page.locator(".cause summary").first.click()
    found = {"wide": violations(page)}
    page.set_viewport_size({"width": 390, "height": 800})
    found["narrow"] = violations(page)
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_pages_of_agents_have_no_violation(
    troubled: Server, visit: Visit, scheme: Scheme
) -> None:
    page = visit(troubled, "ada", "/agents/", color_scheme=scheme)
    found = {"agents": violations(page)}
    page.get_by_role("link", name="oncall-agent", exact=True).first.click()
    expect(page.get_by_role("heading", name="Connections")).to_be_visible()
    found["agent"] = violations(page)
    assert {name: each for name, each in found.items() if each} == {}
