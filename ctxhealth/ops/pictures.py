"""The documents' pictures, taken of a demo that lives its incidents in a folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from django.conf import settings

from ctxhealth.environ import SETTINGS_DOC

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, StorageState

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SIZE = (1440, 900)
PHONE = (390, 844)
INCIDENTS = 5
INCIDENT_CHAT = "agent-zero-ops"
INCIDENT_TITLE = "Nightly migration"
PAGES = (
    ("import.png", "/import/"),
    ("agents.png", "/agents/"),
    ("oncall.png", "/oncall/"),
    ("thresholds.png", "/settings/thresholds/"),
)
TAKEN = (
    "board.png", "board-dark.png", "chat.png", "dialog.png", "incident.png",
    *(name for name, _ in PAGES), "phone.png",
)  # fmt: skip
_LINK = re.compile(r"(http://[^/\s]+)(/login/once/\S+)")
_START_LINES = 100
_LIVE_MS = 20_000
_CALM_MS = 240_000
_STOP_SECONDS = 20


class CannotPicture(Exception):
    """Says in one sentence what is missing or did not happen."""


@dataclass(frozen=True)
class Demo:
    """A demo that serves: its address, and the way in that works once."""

    origin: str
    login: str


def browser_path() -> str:
    """CTXHEALTH_CHROMIUM, else the system's. Raises CannotPicture."""
    named = os.environ.get("CTXHEALTH_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        raise CannotPicture("There is no Chromium: install it, or name it in CTXHEALTH_CHROMIUM.")
    return found


@contextmanager
def demo() -> Iterator[Demo]:
    """A server with demo agents, ended and forgotten at the end. Raises CannotPicture."""
    with TemporaryDirectory(prefix="ctxhealth-pictures-") as folder:
        server = _start(Path(folder))
        try:
            yield _serving(server)
        finally:
            server.terminate()
            server.wait(_STOP_SECONDS)


def _start(folder: Path) -> subprocess.Popen[str]:
    own = {name: value for name, value in os.environ.items() if name not in SETTINGS_DOC}
    return subprocess.Popen(
        [sys.executable, "manage.py", "up", "--demo", "--no-open", "--port", "0"],
        cwd=settings.BASE_DIR,
        env={**own, "CTXHEALTH_DATA_DIR": str(folder), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def _serving(server: subprocess.Popen[str]) -> Demo:
    assert server.stdout is not None
    for _, line in zip(range(_START_LINES), server.stdout, strict=False):
        found = _LINK.search(line)
        if found:
            return Demo(found[1], found[2])
    raise CannotPicture("The demo did not start: `manage.py up --demo` says why.")


def take(folder: Path) -> Iterator[Path]:
    """Each picture's file as it is written, by the names in ``TAKEN``.

    Raises CannotPicture.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise CannotPicture("This needs playwright, which requirements-dev.txt brings.") from error
    with demo() as served, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path(), args=list(FLAGS))
        try:
            yield from _pictures(browser, served, folder)
        except Error as error:
            raise CannotPicture(f"The demo did not get that far: {error.message}") from error
        finally:
            browser.close()


def _pictures(browser: Browser, served: Demo, folder: Path) -> Iterator[Path]:
    board = _context(browser, served).new_page()
    board.goto(served.login)
    board.locator("main form button").first.click()
    _until_everything_happened(board)
    yield _shot(board, folder / "board.png")
    signed_in = board.context.storage_state()
    dark = _context(browser, served, "dark", signed_in).new_page()
    dark.goto("/")
    _until_live(dark)
    yield _shot(dark, folder / "board-dark.png")
    board.locator("#rows tr", has_text=INCIDENT_CHAT).locator("a[href^='/chats/']").first.click()
    _until_live(board)
    board.locator("#timeline canvas").wait_for()
    yield _shot(board, folder / "chat.png")
    board.keyboard.press("f")
    board.locator("dialog#dialog[open]").wait_for()
    yield _shot(board, folder / "dialog.png")
    yield from _others(_context(browser, served, signed_in=signed_in).new_page(), folder)
    phone = _context(browser, served, signed_in=signed_in, size=PHONE).new_page()
    phone.goto("/")
    _until_live(phone)
    yield _shot(phone, folder / "phone.png")


def _others(page: Page, folder: Path) -> Iterator[Path]:
    """The further pages, as the demo leaves them."""
    page.goto("/incidents/")
    link = page.locator("main table a[href^='/incidents/']", has_text=INCIDENT_TITLE).first
    page.goto(link.get_attribute("href") or "/incidents/")
    page.wait_for_load_state("networkidle")
    yield _shot(page, folder / "incident.png")
    for name, path in PAGES:
        page.goto(path)
        page.wait_for_load_state("load")
        yield _shot(page, folder / name)


def _context(
    browser: Browser,
    served: Demo,
    scheme: Literal["light", "dark"] = "light",
    signed_in: StorageState | None = None,
    size: tuple[int, int] = SIZE,
) -> BrowserContext:
    width, height = size
    return browser.new_context(
        base_url=served.origin,
        color_scheme=scheme,
        viewport={"width": width, "height": height},
        storage_state=signed_in,
    )


def _until_live(page: Page) -> None:
    page.locator("#live.on").wait_for(timeout=_LIVE_MS)


def _until_everything_happened(page: Page) -> None:
    """Every incident is critical, and a healthy chat has compacted."""
    _until_live(page)
    page.locator("#rows tr.crit").nth(INCIDENTS - 1).wait_for(timeout=_CALM_MS)
    page.locator("#rows .oc.good").first.wait_for(timeout=_CALM_MS)


def _shot(page: Page, path: Path) -> Path:
    page.mouse.move(0, 0)
    page.screenshot(path=path, animations="disabled")
    return path
