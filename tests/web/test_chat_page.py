"""The chat's regions: buttons, receipts, undo, provenance."""

from __future__ import annotations

import msgspec
import pytest

from ctxhealth.core.model import (
    Advice,
    Block,
    ChatDetail,
    ChatSummary,
    Connection,
    Reading,
    Severity,
    Source,
    Structure,
)
from ctxhealth.web import fragments
from ctxhealth.web.actions import buttons_of
from ctxhealth.web.blocks import names_of
from ctxhealth.web.chat_page import ChatExtras
from ctxhealth.web.icicle import cells_of
from ctxhealth.web.receipts import receipt_of, receipts_of
from ctxhealth.web.series import series_of
from tests.web import factories
from tests.web.factories import MINUTE, NOW, FakeChat
from tests.web.markup import read


def region(name: str, summary: object = None, *, operate: bool = True, **extras: object) -> str:
    told: dict[str, object] = {
        name: extras.pop(name) for name in ("findings", "standing") if name in extras
    }
    if "standing" in told:
        told["latches"] = told.pop("standing")
    detail = factories.detail(summary, **told)  # type: ignore[arg-type]
    chat = FakeChat(id=1, agent="worker-3", external_id="chat-az", summary=detail.summary)
    more = ChatExtras(chat=chat, **extras)  # type: ignore[arg-type]
    html = fragments.chat_regions(detail, more, NOW, operate=operate, only=[name])
    return html[f"chat-1-{name}"]


def test_the_recommended_action_stands_first_and_is_the_only_primary_one() -> None:
    buttons = buttons_of(factories.detail())
    assert buttons[0].action.kind == "compact_fallback"
    assert [button.primary for button in buttons].count(True) == 1


def test_the_wrong_button_explains_itself() -> None:
    buttons = {button.action.kind: button for button in buttons_of(factories.detail())}
    assert not buttons["clear_latch"].available
    assert "nothing to clear" in buttons["clear_latch"].why


@pytest.mark.parametrize(
    ("connection", "said"),
    [(Connection.OFFLINE, "not connected"), (Connection.READ_ONLY, "Read-only"),
     (Connection.IMPORTED, "Read-only"), (Connection.CLOSED, "closed"),
     (Connection.LATE, "not connected")],
)  # fmt: skip
def test_a_chat_that_nothing_can_reach_says_so_before_the_press(
    connection: Connection, said: str
) -> None:
    detail = factories.detail(factories.healthy(connection=connection))
    assert not any(button.available for button in buttons_of(detail))
    assert said in read(region("headline", detail.summary)).text


def test_what_the_agent_cannot_do_is_shown_but_not_offered() -> None:
    detail = factories.detail(factories.healthy(command_kinds=("clear_latch",)))
    fallback = next(b for b in buttons_of(detail) if b.action.kind == "compact_fallback")
    assert not fallback.available
    assert not fallback.primary


def test_clearing_a_latch_that_was_only_inferred_warns_before_the_press() -> None:
    detail = factories.detail(latches=(factories.latch(inferred=True),), findings=())
    clear = next(b for b in buttons_of(detail) if b.action.kind == "clear_latch")
    assert clear.available
    assert "one is inferred" in clear.why


def test_a_bare_clear_latch_means_the_unjustified_one() -> None:
    latches = (factories.latch(latch="good", justified=True), factories.latch(latch="bad"))
    clear = next(b for b in buttons_of(factories.detail(latches=latches))
                 if b.action.kind == "clear_latch")  # fmt: skip
    assert clear.query == "?latch=bad"


def test_while_a_command_is_open_nothing_else_can_be_pressed() -> None:
    html = region(
        "headline", commands=[factories.command(state="waiting", state_reason="a model call")]
    )
    assert "a model call" in read(html).text
    assert "data-dialog" not in html


def test_viewers_see_no_button() -> None:
    for name in ("headline", "latches", "commands"):
        html = region(name, operate=False, latches=[factories.latch()],
                      commands=[factories.command()])  # fmt: skip
        assert "/act/" not in html
        assert "<button" not in html


def test_undo_is_offered_for_the_last_fallback_until_the_next_compaction() -> None:
    done = factories.command(state="succeeded", ended_at=NOW, backup="b.json")
    assert receipts_of([done], [])[0].undo
    later = factories.attempt(started_at=NOW + MINUTE)
    assert not receipts_of([done], [later])[0].undo
    restored = factories.command(kind="restore_backup", state="succeeded", id="x", ended_at=NOW)
    assert not receipts_of([restored, done], [])[1].undo


def test_a_fallback_without_a_backup_offers_no_undo() -> None:
    assert not receipts_of([factories.command(state="succeeded", ended_at=NOW)], [])[0].undo


@pytest.mark.parametrize("state", ["queued", "sent", "received", "waiting"])
def test_what_has_not_started_can_be_cancelled(state: str) -> None:
    assert receipt_of(factories.command(state=state)).cancellable


@pytest.mark.parametrize("state", ["started", "succeeded", "failed", "refused", "expired"])
def test_what_has_started_cannot_be_cancelled(state: str) -> None:
    assert not receipt_of(factories.command(state=state)).cancellable


def test_a_receipt_says_what_it_waits_for_and_why_it_was_refused() -> None:
    waits = receipt_of(factories.command(state="waiting", state_reason="a running model call"))
    assert waits.says == "The agent waits for a safe point: a running model call."
    refused = receipt_of(
        factories.command(state="refused", state_reason="stale", detail="No latch is set.")
    )
    assert refused.says == "The agent refused: stale. No latch is set."


def test_a_restored_history_is_not_said_to_have_freed_anything() -> None:
    done = factories.command(state="succeeded", before=61_500, after=140_261)
    assert receipt_of(done).result == "61,500 → 140,261 tokens"


def test_an_unknown_end_is_never_called_done() -> None:
    receipt = receipt_of(factories.command(state="unknown"))
    assert receipt.final
    assert [station.kind for station in receipt.stations][-1] == "bad"


@pytest.mark.parametrize(
    ("reading", "kind", "text"),
    [
        (Reading(value=61_500, source=Source.LOCAL), "estimate", "~61,500"),
        (Reading(value=61_500, source=Source.PENDING), "pending", "~61,500"),
        (Reading(value=61_500, source=Source.PROVIDER, reliable=False), "unreliable", "61,500"),
        (Reading(), "unknown", "?"),
    ],
)
def test_provenance_is_visible(reading: Reading, kind: str, text: str) -> None:
    html = region("window", factories.healthy(61_500, load=reading))
    assert f'<span class="{kind}">{text}</span>' in html


def test_the_window_names_every_candidate() -> None:
    text = read(region("window")).text
    assert "table says 200,000" in text


def test_the_structure_is_drawn_to_scale() -> None:
    cells = cells_of(factories.structure(topics=10, bulks=3))
    parts = [cell for cell in cells if cell.level == 0]
    assert sum(cell.width for cell in parts) == pytest.approx(100)
    blocks = [cell for cell in cells if cell.level == 1 and cell.kind == "topics"]
    topics = next(cell for cell in parts if cell.kind == "topics")
    assert sum(cell.width for cell in blocks) == pytest.approx(topics.width)


def test_a_thousand_topics_are_bounded_and_lose_no_token() -> None:
    cells = cells_of(factories.structure(topics=1_000))
    blocks = [cell for cell in cells if cell.level == 1 and cell.kind == "topics"]
    assert len(blocks) == 200
    topics = next(cell for cell in cells if cell.level == 0 and cell.kind == "topics")
    assert sum(cell.width for cell in blocks) == pytest.approx(topics.width)


def test_a_block_without_a_title_is_counted_and_not_called_by_its_id() -> None:
    blocks = (
        Block(kind="bulk", id="bulk113", tokens=9_000, messages=3),
        Block(kind="bulk", id="bulk116", tokens=9_000),
        Block(kind="topic", id="topic7", tokens=4_000, title="Refactoring", messages=12),
        Block(kind="topic", id="topic8", tokens=4_000, largest=3_000),
        Block(kind="current", id="current", tokens=2_000),
    )
    assert names_of(blocks) == [
        "bulk 1 · 3 topics",
        "bulk 2",
        "Refactoring",
        "topic 2",
        "current topic",
    ]
    says = [cell.says for cell in cells_of(Structure(source="snapshot", blocks=blocks))]
    assert "bulk 1 · 3 topics: 9,000 tokens, 32% of the structure" in says
    assert "topic Refactoring: 4,000 tokens, 14% of the structure, 12 messages" in says
    assert "largest item of topic 2: 3,000 tokens" in says


def test_a_part_that_is_one_block_is_drawn_once_over_both_rows() -> None:
    cells = cells_of(factories.structure(topics=10))
    current = [cell for cell in cells if cell.kind == "current"]
    assert [(cell.level, cell.rows) for cell in current] == [(0, 2)]


@pytest.mark.parametrize(("largest", "said"), [(900, True), (None, False)])
def test_the_row_of_largest_items_has_a_legend(largest: int | None, said: bool) -> None:
    topic = Block(kind="topic", id="t", tokens=2_000, largest=largest)
    detail = factories.detail(structure=Structure(source="snapshot", blocks=(topic,)))
    chat = FakeChat(id=1, agent="a", external_id="c", summary=detail.summary)
    html = fragments.chat_regions(detail, ChatExtras(chat=chat), NOW, operate=True)
    assert ("largest item of each topic" in read(html["chat-1-structure"]).text) is said


def test_what_another_finding_explains_stands_folded_away() -> None:
    findings = (
        factories.finding(),
        factories.finding("near_trigger", title="Near the trigger", suppressed_by="stalled"),
        factories.finding("overdue", title="Compaction is overdue", suppressed_by="stalled"),
    )
    detail = factories.detail(findings=findings)
    chat = FakeChat(id=1, agent="a", external_id="c", summary=detail.summary)
    html = fragments.chat_regions(detail, ChatExtras(chat=chat), NOW, operate=True)
    open_part, folded = html["chat-1-findings"].split("<details", 1)
    assert "2 more, explained by “Compaction frees nothing”" in folded
    assert "Near the trigger" in folded and "Near the trigger" not in open_part
    assert "Compaction frees nothing" in open_part


def test_advice_that_ends_the_headline_is_not_said_twice() -> None:
    advice = Advice(action="compact_fallback", text="Force a fallback: it needs no model.")
    said = factories.detail(headline=f"Stalled. {advice.text}", headline_advice=advice)
    chat = FakeChat(id=1, agent="a", external_id="c", summary=said.summary)
    html = fragments.chat_regions(said, ChatExtras(chat=chat), NOW, operate=True, only=["headline"])
    assert read(html["chat-1-headline"]).text.count("it needs no model") == 1


def test_a_structure_nobody_reported_is_said_to_be_missing() -> None:
    detail = factories.detail(structure=Structure())
    chat = FakeChat(id=1, agent="a", external_id="c", summary=detail.summary)
    html = fragments.chat_regions(detail, ChatExtras(chat=chat), NOW, operate=True)
    assert "has not reported" in read(html["chat-1-structure"]).text


def test_the_page_of_a_chat_about_which_nothing_is_known_can_be_drawn() -> None:
    detail = ChatDetail(summary=ChatSummary(), chat_seq=0, headline="")
    chat = FakeChat(id=1, agent="a", external_id="c", summary=detail.summary)
    regions = fragments.chat_regions(detail, ChatExtras(chat=chat), NOW, operate=True)
    assert regions.keys() == {f"chat-1-{name}" for name in fragments.CHAT_REGIONS}


def test_tokens_that_nobody_counted_are_marked_as_estimates() -> None:
    heavy = factories.detail().heavy
    guessed = factories.detail(heavy=(msgspec.structs.replace(heavy[0], estimate=True), heavy[1]))
    chat = FakeChat(id=1, agent="worker-3", external_id="chat-az", summary=guessed.summary)
    html = fragments.chat_regions(guessed, ChatExtras(chat=chat), NOW, operate=True, only=["heavy"])
    text = read(html["chat-1-heavy"]).text
    assert "~14,120" in text
    assert "13,480" in text and "~13,480" not in text


def test_a_step_by_hand_stands_once_beside_the_headline() -> None:
    step = "Run /compact in the session."
    by_hand = Advice(action="manual", text=step)
    detail = factories.detail(
        headline=f"Over: too large. {step}",
        headline_advice=by_hand,
        findings=(factories.finding(recommended=(by_hand,)),),
    )
    chat = FakeChat(id=1, agent="worker-3", external_id="chat-az", summary=detail.summary)
    html = fragments.chat_regions(
        detail, ChatExtras(chat=chat), NOW, operate=True, only=["headline"]
    )
    assert read(html["chat-1-headline"]).text.count(step) == 2


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.WARNING])
def test_a_chat_is_shown_as_grave_as_what_is_wrong_with_it(severity: Severity) -> None:
    summary = msgspec.structs.replace(factories.agent_zero(), severity=severity)
    html = region("headline", summary)
    assert f'data-tone="{severity.value}"' in html
    assert f'class="state {severity.value}"' in html


@pytest.mark.parametrize("connection", [Connection.READ_ONLY, Connection.IMPORTED])
def test_a_read_only_chat_offers_only_written_steps(connection: Connection) -> None:
    step = factories.finding(recommended=(Advice(action="manual", text="Run /compact."),))
    for name in ("headline", "latches", "commands", "findings"):
        html = region(name, factories.healthy(connection=connection), findings=(step,),
                      standing=(factories.latch(),), latches=[factories.latch()],
                      commands=[factories.command(state="succeeded", backup="b.json")])  # fmt: skip
        assert "/act/" not in html, name
        assert 'role="button"' not in html, name


@pytest.mark.parametrize("connection", [Connection.LATE, Connection.OFFLINE])
def test_a_latch_of_an_agent_that_is_away_has_no_link(connection: Connection) -> None:
    latch = factories.latch(justified=False)
    told = {"latches": [latch], "standing": (latch,)}
    here = region("latches", factories.healthy(), **told)  # type: ignore[arg-type]
    away = region("latches", factories.healthy(connection=connection), **told)  # type: ignore[arg-type]
    assert "Clear this latch" in here
    assert "Clear this latch" not in away


def test_an_ended_chat_left_a_message_unanswered_and_nobody_waits() -> None:
    changes = {"waiting_since": NOW - 314 * 86_400_000, "last_event_at": NOW - 314 * 86_400_000}
    ended = factories.healthy(connection=Connection.IMPORTED, **changes)
    text = read(region("headline", ended)).text
    assert "a user message was unanswered at the end (20 Jan" in text
    assert "user waiting" not in text
    followed = factories.healthy(connection=Connection.READ_ONLY, waiting_since=NOW - 60_000,
                                 last_event_at=NOW - 60_000)  # fmt: skip
    assert "user waiting" in read(region("headline", followed)).text


def test_what_stands_open_in_an_ended_chat_lasts_until_its_end() -> None:
    latch = factories.latch()
    assert series_of([], [], [latch], [], [])["lanes"]["latches"][0]["to"] is None
    ended = series_of([], [], [latch], [], [], ended_at=NOW)
    assert ended["lanes"]["latches"][0]["to"] == NOW
