"""Codex and pi from a file's rows to what the page says."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ctxhealth.core.model import Outcome, Relief, Source, State, WindowSource
from ctxhealth.readers.base import Event
from tests.readers import pi_session, rollout
from tests.readers.pi_session import PiSession
from tests.readers.rollout import THREAD, WINDOW, Rollout
from tests.readers.session import SESSION, Session, call, of, read
from tests.readers.test_fold import Page, shown
from tests.readers.test_samples import fed


def sample(samples_dir: Path, name: str) -> Page:
    (path,) = (
        path for folder in ("", "cli/") for path in samples_dir.glob(f"{folder}{name}.jsonl")
    )
    reader, events = fed(path)
    assert reader.chat is not None
    return shown(events, reader.chat)


def worst(events: list[Event], chat: str) -> list[tuple[str, str]]:
    """Every finding above info that was ever open, over all the prefixes that end a turn."""
    found = set()
    for at, event in enumerate(events, 1):
        if event["type"] in ("turn.ended", "compaction.finished", "usage.update", "request.sent"):
            row = shown(events[:at], chat).row
            found |= {(f.code, str(f.severity)) for f in row.findings if f.severity != "info"}
    return sorted(found)


def test_codex_the_guess_is_drawn_as_unreliable_and_nothing_is_critical(samples_dir: Path) -> None:
    reader, events = fed(samples_dir / "codex.rollout-12-54-34.jsonl")
    assert reader.chat is not None
    at = max(n for n, event in enumerate(events) if event["type"] == "usage.update") + 1
    then = shown(events[:at], reader.chat).row
    assert (then.load.value, then.load.source) == (940_499, Source.AGENT)
    assert then.load.reliable is False
    assert [(f.code, f.severity) for f in then.findings] == [("meter_unreliable", "warning")]
    row, _, attempts = shown(events, reader.chat)
    assert (row.state, row.findings) == (State.HEALTHY, ())
    assert (row.load.value, row.load.source) == (162_073, Source.PROVIDER)
    assert (row.window.value, row.window.source) == (WINDOW, WindowSource.AGENT)
    assert [(a.outcome, a.before, a.after, a.relief) for a in attempts] == [
        (Outcome.REDUCED, 212_134, 48_297, Relief.RELIEVED)
    ]


@pytest.mark.parametrize(
    "name",
    [
        "codex.rollout-12-47-42", "codex-0.171.0-01-healthy", "codex-0.171.0-02-auto-ok",
        "codex-0.171.0-02b-auto-midturn-ok", "codex-0.171.0-02r-remote-auto-ok",
        "codex-0.171.0-03-manual-ok", "codex-exec-0.171.0-02-auto-ok",
        "codex-0.171.0-07-max-tokens", "pi-1.6.0-01-healthy", "pi-1.6.0-02-auto-ok",
        "pi-1.6.0-03-manual-ok", "pi-1.6.0-05a-overflow-then-ok", "pi-mono.before-compaction",
    ],
)  # fmt: skip
def test_no_healthy_sample_ends_with_a_warning(samples_dir: Path, name: str) -> None:
    row = sample(samples_dir, name).row
    assert [f.code for f in row.findings if f.severity != "info"] == []
    assert row.state in (State.HEALTHY, State.WATCH)


@pytest.mark.parametrize(
    "name", ["codex-0.171.0-04dempty-auto-fail", "pi-1.6.0-04dempty-auto-fail"]
)
def test_an_empty_summary_recorded_as_a_success_is_emptied(samples_dir: Path, name: str) -> None:
    attempts = sample(samples_dir, name).attempts
    assert [(a.outcome, a.error_class) for a in attempts] == [(Outcome.SUMMARIZER_FAILED, "empty")]
    assert "emptied" in attempts[0].flags


def test_a_session_that_dies_of_failed_compactions_is_critical(samples_dir: Path) -> None:
    row, _, attempts = sample(samples_dir, "codex-0.171.0-04a500-auto-fail")
    assert row.severity == "critical"
    assert {"turns_failing", "summarizer_failing"} <= {finding.code for finding in row.findings}
    assert [a.outcome for a in attempts] == [Outcome.SUMMARIZER_FAILED] * 2
    assert all("inferred" in attempt.flags for attempt in attempts)
    assert row.load.value == 33_500


def test_an_overflow_without_usage_is_no_drop(samples_dir: Path) -> None:
    for name, load in (("codex-0.171.0-05a-overflow-then-ok", 31_000),
                       ("pi-1.6.0-05a-overflow-then-ok", 31_000)):  # fmt: skip
        (path,) = (samples_dir / "cli").glob(f"{name}.jsonl")
        reader, events = fed(path)
        at = next(n for n, event in enumerate(events) if event["type"] == "model.failed") + 1
        row = shown(events[:at], reader.chat or "").row
        assert row.load.value in (load, 41_210)
        assert [f.code for f in row.findings if f.severity == "critical"] == ["over_window"]


def test_a_reactive_compaction_after_an_overflow_is_measured_against_the_last_count(
    samples_dir: Path,
) -> None:
    (attempt,) = sample(samples_dir, "pi-1.6.0-05a-overflow-then-ok").attempts
    assert (attempt.trigger, attempt.before, attempt.after) == ("reactive", 31_050, 2_200)
    assert (attempt.outcome, attempt.relief) == (Outcome.REDUCED, Relief.RELIEVED)


def test_codex_many_healthy_compactions_never_warn() -> None:
    session, load = Rollout(), 20_000
    for number in range(60):
        load += 9_000
        if load > 209_000:
            session.task(context=False)
            session.summarise(load + 300)
            session.estimate(31_000)
            load = 30_000
            session.prompt(f"Question {number}?")
            session.say("Carrots.")
            session.used(load)
            session.end()
        else:
            session.turn(load, prompt=f"Question {number}?")
    reader, events = rollout.read(session)
    assert len(of(events, "compaction.finished")) == 2
    assert worst(events, reader.chat or "") == []


def test_pi_many_healthy_compactions_never_warn() -> None:
    session, load = PiSession(), 20_000
    for _ in range(60):
        load += 7_000
        if load > 172_000:
            session.compaction(load, session.last or "", fromHook=False)
            load = 27_000
        session.turn(load)
    reader, events = pi_session.read(session)
    assert len(of(events, "compaction.finished")) == 2
    assert worst(events, reader.chat or "") == []


def test_a_call_that_a_killed_program_left_open_is_no_broken_pair_a_day_later() -> None:
    codex, pi, claude = Rollout(old=True), PiSession(), Session()
    codex.begin()
    codex.call("call_1")
    codex.used(50_000)
    pi.prompt()
    pi.call(50_000, "toolu_1")
    claude.prompt()
    claude.reply("m1", 50_000, call("toolu_1"), stop="tool_use")
    for session in (codex, pi, claude):
        session.clock += timedelta(days=1)
    for load in (51_000, 52_000):
        codex.turn(load)
        pi.turn(load)
        claude.turn(f"m{load}", load)
    assert worst(rollout.read(codex)[1], THREAD) == []
    assert worst(pi_session.read(pi)[1], pi_session.SESSION) == []
    assert worst(read(claude.lines())[1], SESSION) == []
