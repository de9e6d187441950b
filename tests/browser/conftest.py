"""One server and one Chromium for the pages; a server of its own for tests that kill it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.browser.server import Server

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LaunchServer = Callable[..., Server]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def chromium(playwright_driver: Playwright, chromium_path: Path) -> Iterator[Browser]:
    browser = playwright_driver.chromium.launch(
        executable_path=str(chromium_path), headless=True, args=FLAGS
    )
    yield browser
    browser.close()


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[LaunchServer]:
    """Starts servers that belong to this test alone."""
    servers: list[Server] = []

    def start(**seed: Any) -> Server:
        server = Server(tmp_path / f"server-{len(servers)}")
        servers.append(server)
        server.answer = server.seed(**seed)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """For tests that only look; each signs in by its own link."""
    server = Server(tmp_path_factory.mktemp("shared-server"))
    people = {"ada": "operator", "vic": "viewer", "adm": "admin"}
    server.answer = server.seed(people=people, links=60)
    server.start()
    yield server
    server.stop()


class Watched:
    """A page with what its browser complained about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._hear)

    def _hear(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.complaints.append(message.text)


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page as somebody, signed in by a one-time link.

    A report of the content security policy or an error in a script fails the test at its end.
    """
    contexts: list[BrowserContext] = []
    watched: list[Watched] = []

    def open_page(server: Server, who: str = "ada", path: str = "/", **context: Any) -> Page:
        made = chromium.new_context(base_url=server.origin, **context)
        contexts.append(made)
        watched.append(Watched(made.new_page()))
        page = watched[-1].page
        sign_in(page, server, who)
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for each in watched for text in each.complaints] == []


def sign_in(page: Page, server: Server, who: str) -> None:
    """By a one-time link; the page behind it asks for one press, so that previews do not use it."""
    page.goto(server.answer["logins"][who].pop())
    button = page.locator("main form button")
    if button.count():
        button.first.click()
    page.wait_for_url("**/")
