"""Chat content is hostile: no text of an agent changes what the page is made of."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
import pytest

from ctxhealth.core.model import ChatDetail
from ctxhealth.store.queries import CommandRow
from ctxhealth.web import fragments
from ctxhealth.web.chat_page import ChatExtras, ParentLink, change_of
from tests.web import factories
from tests.web.factories import NOW, FakeChat
from tests.web.markup import read

CORPUS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus='alert(1)",
    "</pre></p></section><section id='chat-1-headline' hx-swap-oob='true'>",
    "<tr id='row-1'><td>",
    "<form action='//evil' hx-post='/commands/1/cancel/'><button>",
    "javascript:alert(1)",
    "{{ csrf_token }}{% load ctx %}",
    "<!-- --!> <![CDATA[",
    "&lt;img src=x onerror=alert(1)&gt;",
    "</svg><style>*{display:none}</style>",
    "\u202egpj.exe\u2066",
    "\\u003cscript\\u003e",
)
# Words of the server's own, which no agent can choose.
OWN_WORDS = {"Segment.kind", "Block.kind", "Advice.action", "TriggerView.scope"}


def poisoned(value: Any, text: str, name: str = "") -> Any:
    """The same view with ``text`` in every field that holds a string."""
    if isinstance(value, Enum) or value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return text
    if isinstance(value, tuple | list):
        return type(value)(poisoned(each, text, name) for each in value)
    if isinstance(value, dict):
        return {key: poisoned(each, text) for key, each in value.items()}
    assert isinstance(value, msgspec.Struct), value
    kind = type(value).__name__
    fields = {}
    for each in value.__struct_fields__:
        held = getattr(value, each)
        fields[each] = held if f"{kind}.{each}" in OWN_WORDS else poisoned(held, text)
    return type(value)(**fields)


def page_of(text: str) -> tuple[ChatDetail, ChatExtras]:
    detail = poisoned(factories.detail(), text)
    chat = FakeChat(id=1, agent=text, external_id=text, summary=detail.summary)
    attempt = poisoned(factories.attempt(1, backup="b", phase="mid_turn", lossy=True), text)
    child = FakeChat(id=9, agent=text, external_id=text, summary=poisoned(
        factories.healthy(), text))  # fmt: skip
    return detail, ChatExtras(
        chat=chat,
        attempts=[attempt],
        latches=[poisoned(factories.latch(holder="h", lapses="l"), text)],
        closed_findings=[poisoned(factories.finding(closed_at=NOW, suppressed_by="x"), text)],
        commands=[_command(text, "waiting"), _command(text, "succeeded", ended_at=NOW)],
        children=[child],
        change=change_of(attempt, detail, detail),
        parent=ParentLink(3, text),
    )


def _command(text: str, state: str, **changes: Any) -> CommandRow:
    return factories.command(
        kind=text, state=state, state_reason=text, by=text, reason=text, backup=text, **changes
    )


@pytest.mark.parametrize("text", CORPUS)
def test_no_text_changes_what_a_chat_page_is_made_of(text: str) -> None:
    plain = fragments.chat_regions(*page_of("plain words"), NOW, operate=True)
    hostile = fragments.chat_regions(*page_of(text), NOW, operate=True)
    assert hostile.keys() == plain.keys()
    for region, html in hostile.items():
        assert read(html).skeleton == read(plain[region]).skeleton, region


@pytest.mark.parametrize("text", CORPUS)
def test_no_text_changes_what_a_row_is_made_of(text: str) -> None:
    rows = [
        [FakeChat(id=4, agent=said, external_id=said, summary=poisoned(summary, said))]
        for summary in (factories.agent_zero(), factories.maka())
        for said in (text, "plain words")
    ]
    drawn = [fragments.board_rows(row, NOW, operate=True)["row-4"] for row in rows]
    assert read(drawn[0]).skeleton == read(drawn[1]).skeleton
    assert read(drawn[2]).skeleton == read(drawn[3]).skeleton


@pytest.mark.parametrize("text", CORPUS)
def test_hostile_text_is_shown_as_it_is(text: str) -> None:
    regions = fragments.chat_regions(*page_of(text), NOW, operate=True)
    assert text in read(regions["chat-1-head"]).text


def test_every_fragment_is_one_element_with_an_id_that_is_allowed() -> None:
    detail, extras = page_of(CORPUS[3])
    pushed = {
        **fragments.chat_regions(detail, extras, NOW, operate=True),
        **fragments.board_rows(factories.fleet(12), NOW, operate=True),
        **fragments.board_header({"healthy": 3}, {"reduced": 2}, NOW),
        "agents-table": fragments.agents_table([], NOW),
        f"command-{extras.commands[0].id}": fragments.command_receipt(
            extras.commands[0], NOW, operate=True
        ),
    }
    for region, html in pushed.items():
        tops = read(html).tops
        assert [top.attributes.get("id") for top in tops] == [region]
        assert tops[0].attributes["hx-swap-oob"] == "morph"
        assert fragments.REGION_ID.match(region), region


def test_no_id_stands_twice_on_a_chat_page() -> None:
    regions = fragments.chat_regions(*page_of("plain"), NOW, operate=True, oob=False)
    ids = [e.attributes["id"] for html in regions.values() for e in read(html).elements
           if "id" in e.attributes]  # fmt: skip
    assert len(ids) == len(set(ids))


def test_nothing_inline_and_no_form_stands_in_a_live_region() -> None:
    regions = fragments.chat_regions(*page_of("plain"), NOW, operate=True)
    regions |= fragments.board_rows(factories.fleet(12), NOW, operate=True)
    for html in regions.values():
        for element in read(html).elements:
            assert element.tag not in {"script", "style", "form", "iframe"}
            assert not [a for a in element.attributes if a == "style" or a.startswith("on")]


def test_a_link_never_leaves_the_server() -> None:
    regions = fragments.chat_regions(*page_of("javascript:alert(1)"), NOW, operate=True)
    for html in regions.values():
        for element in read(html).elements:
            for name in ("href", "hx-get", "hx-post"):
                target = element.attributes.get(name)
                assert target is None or target.startswith(("/", "#", "?")), target
