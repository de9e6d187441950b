"""Reads fragments the way a browser would, to see what a hostile text has become."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"input", "meta", "link", "br", "img", "hr"}
# A row leaves out the ends of its cells, as HTML allows.
ENDS_ITSELF = {"td", "th", "li", "option"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    depth: int


@dataclass
class Markup(HTMLParser):
    """``elements`` in order; ``text`` is everything between them, unescaped."""

    elements: list[Element] = field(default_factory=list)
    text: str = ""
    comments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ENDS_ITSELF and self._open and self._open[-1] == tag:
            self._open.pop()
        self.elements.append(Element(tag, dict(attrs), len(self._open)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs), len(self._open)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open[-1] != tag and self._open[-1] in ENDS_ITSELF:
            self._open.pop()
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def tops(self) -> list[Element]:
        return [element for element in self.elements if element.depth == 0]

    @property
    def skeleton(self) -> list[tuple[str, tuple[str, ...]]]:
        """Tags with the names of their attributes: what no text may change."""
        return [(element.tag, tuple(sorted(element.attributes))) for element in self.elements]


def read(html: str) -> Markup:
    markup = Markup()
    markup.feed(html)
    markup.close()
    return markup
