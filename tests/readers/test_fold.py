"""From a file's rows to what the page says: the reader's events through the fold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from ctxhealth.core.changes import Changes
from ctxhealth.core.fold import Stamp, fold, new_state
from ctxhealth.core.model import (
    AttemptView,
    ChatDetail,
    ChatSummary,
    Outcome,
    Relief,
    Source,
    State,
    WindowSource,
)
from ctxhealth.core.rules import default_rules
from ctxhealth.core.structure import structure_from_items
from ctxhealth.core.view import detail, summary
from ctxhealth.readers.base import Event
from ctxhealth.wire.decode import decode_event
from tests.readers.session import SESSION, Session, call, read, text


class Page(NamedTuple):
    """The chat's row and page after its events, and its attempts in order."""

    row: ChatSummary
    page: ChatDetail
    attempts: list[AttemptView]


def shown(events: list[Event], chat: str = SESSION) -> Page:
    """What is shown of the chat, by the transcript's own times."""
    rules = default_rules()
    state = new_state(chat, events[0]["ts"])
    changes = Changes()
    own = [event for event in events if event["chat"] == chat]
    for seq, event in enumerate(own, 1):
        sent = {"seq": seq, **event}
        if "excerpt" in sent:
            sent["excerpt"] = sent["excerpt"][:400]
        decoded = decode_event(json.dumps(sent).encode())
        fold(state, decoded.event, Stamp(seq, event["ts"]), changes, rules)
    assert changes.oddities == []
    page = detail(state, rules, structure_from_items(state))
    return Page(summary(state, rules), page, list(changes.attempts.values()))


def sample(samples_dir: Path, name: str) -> Page:
    names = (f"entire*-{name}.jsonl", f"cli/claude-code-2.1.332-{name}.jsonl")
    (path,) = (path for pattern in names for path in samples_dir.glob(pattern))
    reader, events = read(path.read_bytes().splitlines())
    assert reader.chat is not None
    return shown(events, reader.chat)


def test_the_sample_with_one_compaction_is_healthy_and_says_where_numbers_come_from(
    samples_dir: Path,
) -> None:
    row = sample(samples_dir, "0.auto-compact").row
    assert (row.state, row.findings) == (State.HEALTHY, ())
    last = row.last_compaction
    assert last is not None
    assert (last.outcome, last.before, last.after) == (Outcome.REDUCED, 154_992, 49_761)
    assert last.relief is Relief.RELIEVED
    assert (row.load.value, row.load.source) == (67_275, Source.PROVIDER)
    assert (row.window.value, row.window.source) == (200_000, WindowSource.TABLE)
    assert (row.requests, row.compactions) == (13, 1)
    assert (row.compactions, row.waiting_since, row.empty_replies) == (1, None, 0)


def test_no_healthy_sample_gives_a_finding(samples_dir: Path) -> None:
    for name in ("0.jump-150210-176700", "0.auto-then-manual",
                 "0.auto-compact-orphan-result", "01-healthy", "02-auto-ok",
                 "03-manual-ok", "05a-overflow-then-ok", "07-max-tokens"):  # fmt: skip
        row = sample(samples_dir, name).row
        assert (name, row.state, [finding.code for finding in row.findings]) == (
            name, State.HEALTHY, [],
        )  # fmt: skip


def test_a_load_that_stays_is_a_warning_that_rests_on_inferred_attempts(samples_dir: Path) -> None:
    row, page, attempts = sample(samples_dir, "04a500-auto-fail-below-block")
    assert [(finding.code, finding.severity) for finding in row.findings] == [
        ("stalled", "warning")
    ]
    said = "inferred from a load that stays at 170,000 and more"
    assert said in row.findings[0].sentence and said in page.headline
    assert row.last_compaction is not None and row.last_compaction.inferred
    assert [attempt.outcome for attempt in attempts] == [Outcome.NO_PROGRESS] * 2
    assert all("inferred" in attempt.flags for attempt in attempts)
    assert all((attempt.reason or "").startswith("Inferred:") for attempt in attempts)
    # Nothing was replaced: what is known of the context stays known.
    assert sum(block.tokens or 0 for block in page.structure.blocks) > 100


def test_turns_that_die_at_the_blocking_limit_are_critical(samples_dir: Path) -> None:
    row, page, attempts = sample(samples_dir, "04a500-auto-fail")
    assert (row.state, row.severity, row.requests) == (State.STOPPED, "critical", 4)
    assert [(finding.code, finding.severity) for finding in row.findings] == [
        ("turns_failing", "critical"), ("summarizer_failing", "warning"), ("stalled", "warning"),
        ("refused", "info"),
    ]  # fmt: skip
    assert [attempt.outcome for attempt in attempts] == [Outcome.SUMMARIZER_FAILED] * 2
    assert {attempt.error_class for attempt in attempts} == {"provider"}
    assert {attempt.ms for attempt in attempts} == {None}
    assert page.headline_advice is not None
    assert page.headline_advice.text.startswith("Start a new session")


def test_a_failed_command_is_shown_with_its_error_and_alarms_until_the_next_answer(
    samples_dir: Path,
) -> None:
    row, _, (attempt,) = sample(samples_dir, "04a500-manual-fail")
    assert (attempt.outcome, attempt.trigger) == (Outcome.SUMMARIZER_FAILED, "manual")
    assert (attempt.reason or "").startswith("API Error: 500 Internal server error.")
    assert (row.state, row.findings) == (State.HEALTHY, ())


def test_a_silent_retry_is_not_an_alarm(samples_dir: Path) -> None:
    row = sample(samples_dir, "06-empty-reply").row
    assert row.severity not in ("critical", "warning")


def test_who_fills_the_context_is_estimated_from_characters_and_marked() -> None:
    session = Session()
    session.prompt("Look.")
    session.reply("m1", 40_000, call("t1"), stop="tool_use")
    session.result("t1", "x" * 80_000)
    session.answer("m2", 61_000)
    row, page, _ = shown(read(session.lines())[1])
    assert page.heavy[0].tokens == 20_000
    assert page.heavy[0].kind == "tool_result"
    assert all(item.estimate for item in page.heavy)
    assert sum(segment.tokens for segment in row.segments) == row.load.value == 61_000
    assert [block.estimate for block in page.structure.blocks] == [True]
    # Characters are no count of the history: that stays unknown.
    assert row.history.value is None


def test_211_compactions_in_a_row_are_one_finding() -> None:
    session = Session()
    session.prompt()
    session.reply("m0", 168_000, text("Go."))
    for number in range(211):
        session.boundary(168_000)
        session.reply(f"m{number + 1}", 167_500, text("Go on."))
    row = shown(read(session.lines())[1]).row
    looping = [finding for finding in row.findings if finding.code == "looping"]
    assert [finding.severity for finding in looping] == ["critical"]
    assert row.compactions == 211


def test_a_healthy_long_session_that_compacts_again_and_again_gives_no_warning() -> None:
    session, load = Session(), 20_000
    for number in range(600):
        load = load + 2_500
        if load > 166_500:
            session.boundary(load)
            load = 30_000
        session.turn(f"m{number}", load)
    row = shown(read(session.lines())[1]).row
    assert row.compactions > 5
    assert row.severity in (None, "info")


def test_a_synthetic_reply_counts_as_answered_and_is_neither_load_nor_empty() -> None:
    session = Session()
    session.turn("m1", 20_000)
    session.synthetic("No response requested.")
    row = shown(read(session.lines())[1]).row
    assert (row.requests, row.load.value, row.empty_replies) == (2, 20_000, 0)
    assert row.state is State.HEALTHY


def test_unreadable_lines_are_counted_on_the_chat_and_are_no_crisis() -> None:
    session = Session()
    session.turn("m1", 20_000)
    lines = [*session.lines(), b"rubbish", b'{"type":"us', b"\x00\x00"]
    session.turn("m2", 21_000)
    row = shown(read([*lines, *session.lines()[2:]])[1]).row
    assert (row.unreadable_lines, row.load.value) == (3, 21_000)
    assert row.severity in (None, "info")
