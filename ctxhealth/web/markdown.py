"""Notes that people write, as HTML that nobody can misuse.

CommonMark with tables and strikethrough. Raw HTML is text here, pictures are their words (a
foreign address would tell who reads), and a link goes to http, https, mailto or a place on this
server; whatever else stands in a note stays what its writer typed.
"""

from __future__ import annotations

import re
from functools import cache

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_ALLOWED = ("http:", "https:", "mailto:")
# A page's own headings; those of a note go on beneath them.
_ABOVE = 2


def html_of(text: str) -> SafeString:
    """The note as HTML; its headings begin at the third level, under the page's own."""
    return SafeString(_renderer().render(text))


@cache
def _renderer() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 20})
    made.enable(["table", "strikethrough"]).disable(["image"])
    made.validateLink = _harmless  # type: ignore[method-assign]
    made.core.ruler.push("outline", _outline)
    made.add_render_rule("link_open", _link)
    return made


def _harmless(url: str) -> bool:
    """Whether a link may go there. What a browser would strip out of a scheme is not one."""
    plain = re.sub(r"[\x00-\x20\x7f-\xa0]", "", url)
    found = _SCHEME.match(plain)
    return not plain.startswith("//") and (found is None or found[0].lower() in _ALLOWED)


def _outline(state: StateCore) -> None:
    """Headings by their depth in the note, so that no level is left out, whatever was typed."""
    above: list[str] = []
    for token in state.tokens:
        if token.type == "heading_open":
            while above and above[-1] >= token.tag:
                above.pop()
            above.append(token.tag)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, _ABOVE + len(above))}"


def _link(
    renderer: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return renderer.renderToken(tokens, index, options, env)
