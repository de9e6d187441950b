"""Files brought in a real browser: chosen, dropped, without a script; and what axe says of it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import Server
from tests.browser.test_axe import SCHEMES, Scheme, violations
from tests.readers.session import Session

Visit = Callable[..., Page]


def file(name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": "application/x-ndjson", "buffer": data}


def session(id: str, turns: int = 2, *bad: bytes) -> bytes:
    made = Session(f"{id}-0000-4000-8000-000000000000")
    for number in range(turns):
        made.turn(f"m{number}", 20_000 + number)
    return made.bytes() + b"".join(line + b"\n" for line in bad)


def test_a_chosen_file_lands_on_its_chat(shared_server: Server, visit: Visit) -> None:
    page = visit(shared_server, "ada", "/import/")
    page.locator("#files").set_input_files([file("mine.jsonl", session("aaaa0001"))])
    page.get_by_role("button", name="Import").click()
    page.wait_for_url("**/chats/*/", timeout=20_000)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Question m0?")
    expect(page.locator(".meta")).to_contain_text("Imported")


def test_files_that_are_dropped_are_read_and_told_line_by_line(
    shared_server: Server, visit: Visit
) -> None:
    page = visit(shared_server, "ada", "/import/")
    data = base64.b64encode(session("aaaa0002", 2, b"not a row")).decode()
    page.evaluate(
        """(data) => {
          const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
          const transfer = new DataTransfer();
          transfer.items.add(new File([bytes], "dropped.jsonl"));
          transfer.items.add(new File(["%PDF-1.7"], "letter.pdf"));
          for (const kind of ["dragenter", "dragover", "drop"])
            document.querySelector("[data-drop]").dispatchEvent(
              new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        data,
    )
    dropped = page.locator("#imports-list tr", has_text="dropped.jsonl")
    expect(dropped).to_contain_text("1 unreadable line", timeout=20_000)
    expect(page.locator("#imports-list tr", has_text="letter.pdf")).to_contain_text(
        "This is a PDF."
    )
    expect(page.locator("#imports-list")).not_to_have_attribute("hx-trigger", "every 1s")
    dropped.get_by_role("link", name="1 unreadable line").click()
    expect(page.locator("#troubles")).to_contain_text("… … … (9 bytes)")


def test_what_is_plainly_too_much_is_said_before_it_is_sent(
    shared_server: Server, visit: Visit
) -> None:
    page = visit(shared_server, "ada", "/import/")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    page.evaluate("document.getElementById('bring').dataset.most = '10'")
    page.locator("#files").set_input_files([file("large.jsonl", session("aaaa0003"))])
    page.get_by_role("button", name="Import").click()
    expect(page.locator("[data-bring-trouble]")).to_contain_text("large.jsonl has")
    assert "POST" not in sent


def test_without_a_script_a_file_is_brought_and_the_page_looks_again(
    shared_server: Server, visit: Visit
) -> None:
    page = visit(shared_server, "ada", "/import/", java_script_enabled=False)
    page.locator("#files").set_input_files([file("plain.jsonl", session("aaaa0004"))])
    page.get_by_role("button", name="Import").click()
    page.wait_for_url("**/import/?drop=*")
    row = page.locator("#imports-list tr", has_text="plain.jsonl")
    for _ in range(40):
        if "imported" in row.inner_text():
            break
        page.reload()
    expect(row).to_contain_text("imported")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_pages_of_imports_have_no_violation(
    shared_server: Server, visit: Visit, scheme: Scheme
) -> None:
    number = {"light": "aaaa0005", "dark": "aaaa0006"}[scheme]
    page = visit(shared_server, "ada", "/import/", color_scheme=scheme)
    page.locator("#files").set_input_files([file("x.jsonl", session(number, 2, b"{torn", b"[1]"))])
    page.get_by_role("button", name="Import").click()
    row = page.locator("#imports-list tr.fresh")
    expect(row).to_contain_text("2 unreadable lines", timeout=20_000)
    found = {"/import/": violations(page)}
    row.get_by_role("link", name="x.jsonl").click()
    expect(page.locator("#troubles tbody tr")).to_have_count(2)
    found["detail"] = violations(page)
    page.set_viewport_size({"width": 390, "height": 800})
    found["narrow"] = violations(page)
    page.goto("/import/")
    found["narrow list"] = violations(page)
    assert {path: each for path, each in found.items() if each} == {}
