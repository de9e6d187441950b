"""The board: what a row says, how much a page weighs."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest
from django.utils.html import escape

from ctxhealth.store.queries.board_order import ORDERS
from ctxhealth.web import fragments, states
from ctxhealth.web.columns import heads_of, sort_select, sort_words
from ctxhealth.web.filters import filters_of, link, query_of, selects_of
from ctxhealth.web.rows import row_of
from tests.quality.sources import ROOT
from tests.web import factories
from tests.web.factories import NOW, FakeChat
from tests.web.markup import read


def row_text(chat: FakeChat, *, operate: bool = False) -> str:
    return read(fragments.board_rows([chat], NOW, operate=operate)[f"row-{chat.id}"]).text


def test_a_row_says_what_is_wrong_with_its_numbers() -> None:
    text = row_text(factories.fleet()[0])
    for said in ("Stopped", "deploy-bot nightly migration", "149,761", "/ 195,904", "76%", "−261",
                 "history 140,261 / 140,000", "Summarizer failed", "unusable ×5"):  # fmt: skip
        assert said in text, said


def test_a_healthy_row_names_the_model_and_not_a_headline() -> None:
    text = row_text(FakeChat(id=1, agent="a", external_id="c", summary=factories.healthy()))
    assert "claude-sonnet-4-5" in text
    assert "Healthy." not in text


def test_nothing_known_is_shown_as_unknown_and_never_as_zero() -> None:
    text = row_text(factories.fleet()[8])
    assert "?" in text
    assert "0" not in text.replace("18:14:30", "")


def test_a_viewer_gets_no_button() -> None:
    chat = factories.fleet()[2]
    row = fragments.board_rows([chat], NOW, operate=False)[f"row-{chat.id}"]
    assert "/act/" not in row
    assert "/act/" in fragments.board_rows([chat], NOW, operate=True)[f"row-{chat.id}"]


def test_a_read_only_chat_offers_no_button() -> None:
    assert row_of(factories.fleet()[6], NOW).actions == ()


def test_clear_latch_is_offered_where_a_latch_stands() -> None:
    kinds = [[a.kind for a in row_of(chat, NOW).actions] for chat in factories.fleet()[:3]]
    assert kinds == [
        ["compact_fallback"],
        ["compact_fallback"],
        ["compact_fallback", "clear_latch"],
    ]


def test_a_pushed_row_does_not_change_with_the_clock() -> None:
    chats = factories.fleet()
    now, later = (fragments.board_rows(chats, at, operate=True) for at in (NOW, NOW + 86_400_000))
    assert now == later


def test_a_hundred_rows_stay_under_their_weight() -> None:
    rows = fragments.board_rows(factories.fleet(100), NOW, operate=True, oob=False)
    assert sum(len(row.encode()) for row in rows.values()) < 142_000


def test_every_icon_that_a_page_can_ask_for_is_in_the_sprite() -> None:
    sprite = (ROOT / "static/icons.svg").read_text(encoding="utf-8")
    metas = [
        *map(states.state, states.STATE_META),
        *map(states.outcome, states.OUTCOME_META),
        *map(states.severity, states.SEVERITY_META),
        *map(states.connection, states.CONNECTION_META),
        *map(states.command, states.COMMAND_STATE_META),
    ]
    missing = {meta.icon for meta in metas if f'id="{meta.icon}"' not in sprite}
    missing |= {name for name in _icons_in_templates() if f'id="{name}"' not in sprite}
    assert missing == set()


def _icons_in_templates() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "templates").rglob("*.html")]
    return {name for text in texts for name in re.findall(r'{% icon "([a-z0-9-]+)"', text)}


def test_a_chip_toggles_its_state_and_keeps_the_other_filters() -> None:
    chips = {c.state: c for c in fragments.board_chips({"stopped": 2}, {"q": "x", "state": "over"})}
    assert chips["stopped"].query == "q=x&state=stopped%2Cover"
    assert chips["over"].on
    assert chips["over"].query == "q=x"


@pytest.mark.parametrize(("state", "number"), [("", "12"), ("stopped,over", "3"), ("hung", "0")])
def test_the_header_counts_the_chats_that_are_shown(state: str, number: str) -> None:
    counts = {"stopped": 2, "over": 1, "healthy": 9}
    header = fragments.board_header(counts, {}, NOW, query={"state": state} if state else {})
    assert f'<span class="dim num">{number}</span>' in header["board-chips"]


def test_filters_are_read_from_the_address_and_nonsense_is_left_out() -> None:
    query = query_of({"state": "stopped,nonsense", "latch": "yes", "evil": "1", "q": " a " * 200})
    filters = filters_of(query)
    assert filters.states == ("stopped",)
    assert filters.latched is True
    assert len(filters.q) <= 200
    assert "evil" not in link(query)


def test_a_head_starts_its_own_order_turns_it_round_and_keeps_the_filters() -> None:
    heads = {head.column.label: head for head in heads_of({"q": "x"})}
    assert {label: head.aria for label, head in heads.items() if head.aria} == {
        "State": "descending"
    }
    assert heads["Load / usable"].query == "q=x&sort=load"
    assert heads["State"].query == "q=x&sort=-state"
    assert heads["Latch"].query == ""
    turned = {head.column.label: head for head in heads_of({"q": "x", "sort": "load"})}
    assert turned["Load / usable"].aria == "descending"
    assert turned["Load / usable"].query == "q=x&sort=-load"
    assert turned["State"].query == "q=x"
    again = {head.column.label: head for head in heads_of({"sort": "-load"})}
    assert again["Load / usable"].aria == "ascending"


def test_every_order_of_the_store_has_words_and_every_head_has_an_order() -> None:
    assert {sort_words({"sort": sort}) for sort in ORDERS if sort}
    named = {head.column.sort for head in heads_of({}) if head.column.sort}
    assert named - {"state"} <= set(ORDERS)
    assert sort_select({"sort": "-load"}).options[-1] == ("-load", "emptiest first")


def test_an_order_that_is_none_is_left_out_of_the_address() -> None:
    assert "sort" not in query_of({"sort": "id; drop table"})
    assert filters_of(query_of({"sort": "-waiting"})).sort == "-waiting"


def test_a_users_wait_is_loud_only_after_a_minute() -> None:
    def kind(seconds: int) -> str:
        chat = factories.healthy(waiting_since=NOW - 1_000 * seconds)
        row = FakeChat(id=1, agent="a", external_id="c", summary=chat)
        html = fragments.board_rows([row], NOW, operate=False, oob=False)["row-1"]
        found = re.search(r'<time class="(wait[a-z ]*)"', html)
        assert found is not None
        return found[1]

    assert (kind(59), kind(60)) == ("wait", "wait late")


def test_what_is_critical_is_said_in_full_beneath_the_title() -> None:
    chat = factories.fleet()[0]
    html = fragments.board_rows([chat], NOW, operate=False)[f"row-{chat.id}"]
    assert f'</div><span class="say">{escape(chat.summary.headline)}</span>' in html


def test_a_chosen_agent_that_is_gone_stays_chosen() -> None:
    selects = selects_of({"agent": "gone"}, {"agents": ["here"], "models": []})
    assert [value for value, _ in selects[0].options] == ["gone", "here"]


def test_the_header_says_how_the_fleets_compactions_ended() -> None:
    header = fragments.board_header({"healthy": 3}, {"reduced": 9, "summarizer_failed": 3}, NOW)
    text = read(header["board-outcomes"]).text
    assert "12 compactions" in text
    assert "9 reduced" in text
    assert "3 summarizer failed" in text


def test_a_count_that_cannot_be_right_is_no_share_of_anything() -> None:
    chat = factories.fleet()[0]
    load = msgspec.structs.replace(chat.summary.load, value=10**15, reliable=False)
    doubtful = replace(chat, summary=msgspec.structs.replace(chat.summary, load=load))
    assert row_of(chat, NOW).share
    assert row_of(doubtful, NOW).share == ""


def test_the_advice_stands_apart_from_its_cause() -> None:
    chat = factories.fleet()[0]
    said = msgspec.structs.replace(chat.summary, headline="Over: 9 of 8. Cut it.", advice="Cut it.")
    assert row_of(replace(chat, summary=said), NOW).cause == "Over: 9 of 8."
