"""Public incidents, replayed: the diagnosis of each is the one expected, and no other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ctxhealth.cli.replayed import Replay
from ctxhealth.cli.streams import read_stream
from ctxhealth.core.incidents_causes import LEADS_TO
from ctxhealth.core.rules import Rules, Thresholds
from ctxhealth.wire import decode_event
from ctxhealth.wire.events import EVENT_TYPES
from tests.incidents.comparing import compare
from tests.incidents.make import DOCUMENT, FOLDER, files
from tests.incidents.page import page
from tests.incidents.roots import ROOTS
from tests.incidents.telling import CASES

STREAMS = sorted(FOLDER.glob("*.jsonl"))


def differences(stream: Path, rules: Rules | None = None) -> list[str]:
    expected = json.loads(stream.with_suffix(".expect.json").read_text("utf-8"))
    checks = {check["after"]: check for check in expected["checks"]}
    replay, found = Replay(rules), []
    for number, line in enumerate(read_stream(stream), start=1):
        replay.take(line)
        if number in checks:
            found += [f"after line {number}: {told}" for told in compare(replay, checks[number])]
    return found


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
def test_the_diagnosis_is_the_expected_one(stream: Path) -> None:
    assert differences(stream) == []


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
def test_every_event_is_one_of_the_protocol_without_a_field_it_does_not_know(stream: Path) -> None:
    for line in read_stream(stream):
        if line["type"].startswith("server."):
            assert line["type"] in EVENT_TYPES
            continue
        # An explicit 0 is a field's default, which the fast path does not write back.
        told = {key: value for key, value in line.items() if value != {"text_chars": 0}}
        assert decode_event(json.dumps(told, separators=(",", ":")).encode()).plain, line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stalled_attempts", 3), ("summarizer_failures", 5), ("loop_compactions", 6),
        ("loop_refire", 0), ("loop_turn_row", 5), ("empty_replies", 20), ("failing_turns", 9),
        ("overdue_requests", 4), ("jump_share", 0.99), ("huge_item_share", 5.0),
        ("cumulative_steps", 3), ("identical_requests", 200), ("evidence_share", 0.0),
        ("window_conflict_share", 1.0), ("undercount", 0.2), ("inferred_requests", 9),
        ("reserve_share_of_window", 2.5), ("reserve_tokens", 0), ("relieved_share", 0.01),
        ("cooldown_headroom_share", 0.0), ("call_ms", 3_600_000), ("near_trigger_share", 9.0),
    ],
)  # fmt: skip
def test_another_threshold_would_be_noticed(name: str, value: float) -> None:
    rules = Rules(thresholds=replace(Thresholds(), **{name: value}))
    assert any(differences(stream, rules) for stream in STREAMS), f"no case rests on {name}"


def test_the_fixtures_are_what_the_cases_tell() -> None:
    written = {path.name: path.read_text("utf-8") for path in FOLDER.glob("C*.json*")}
    assert written == files()


def test_the_page_of_incidents_is_current() -> None:
    assert DOCUMENT.read_text("utf-8") == page()


def test_every_case_checks_something() -> None:
    for path in FOLDER.glob("*.expect.json"):
        checks = json.loads(path.read_text("utf-8"))["checks"]
        assert checks and all(len(check) > 2 for check in checks), path.name


def test_every_expected_root_is_of_a_case_and_a_cause_that_is_known() -> None:
    assert set(ROOTS) <= {case.name for case in CASES}
    assert set(ROOTS.values()) <= set(LEADS_TO)
