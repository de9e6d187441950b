"""What a page shows, in a form that two loads of it can be compared in."""

from __future__ import annotations

from playwright.sync_api import Page

# Ages are told by the browser's clock; the rest are marks that scripts leave on what they touched.
SHOWN = """
(selectors) => selectors.flatMap((each) => [...document.querySelectorAll(each)]).map((found) => {
  const copy = found.cloneNode(true);
  for (const node of [copy, ...copy.querySelectorAll("*")]) {
    node.removeAttribute("hx-swap-oob");
    node.classList.remove("htmx-settling", "htmx-added", "htmx-swapping", "htmx-request");
    if (!node.getAttribute("class")) node.removeAttribute("class");
    if (node.tagName === "TIME") { node.textContent = ""; node.removeAttribute("title"); }
    if (node.tagName === "DETAILS") node.removeAttribute("open");
    for (const attribute of [...node.attributes]) {
      if (attribute.name.startsWith("data-rest")) node.removeAttribute(attribute.name);
    }
  }
  copy.normalize();
  return copy.outerHTML.replace(/\\s+/g, " ").replace(/ >/g, ">");
})
"""
BOARD = ["#board-chips", "#board-outcomes", "#rows > tr"]
CHAT = ["[id^='chat-'][id*='-']"]


def shown(page: Page, selectors: list[str]) -> list[str]:
    found: list[str] = page.evaluate(SHOWN, selectors)
    assert found, selectors
    return found


def until_live(page: Page) -> None:
    page.wait_for_selector("#live.on", timeout=20_000)


def until_same(page: Page, other: Page, selectors: list[str]) -> None:
    """Both show the same within ten seconds; the difference is in the failure."""
    for _ in range(100):
        if shown(page, selectors) == shown(other, selectors):
            return
        page.wait_for_timeout(100)
    assert shown(page, selectors) == shown(other, selectors)
