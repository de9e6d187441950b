"""What the bridge told of real sessions, as recorded, through the fold: the same diagnosis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.story import Story, wire_event

STREAMS = Path(__file__).parent / "streams"
Frame = dict[str, Any]


def read(name: str) -> list[Frame]:
    lines = (STREAMS / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def story(events: list[Frame]) -> Story:
    """As the server folded it; what the server itself wrote stands in its order."""
    found = Story(live=False)
    first = events[0]["ts"] - 10_000
    for event in events:
        if event["type"] == "server.connected":
            found.connected(commands=event["commands"])
        elif event["type"] == "server.command":
            found.command(event["command"], event["kind"], event["state"])
        elif not event["type"].startswith("server."):
            fields = {key: value for key, value in event.items() if key not in ("chat", "seq")}
            found.put(wire_event(**fields, seq=found.seq + 1), at=event["ts"] - first)
    return found


# state, latches (kind, justified), findings, attempts, a piece of what it says
EXPECTED: dict[str, tuple[str, list[Any], dict[str, str], list[Any], str]] = {
    "real-healthy": (
        "watch", [], {"near_trigger": "info"}, [("proactive", "reduced")],
        "10,887 is at 91% of the trigger of 12,000",
    ),
    "real-forced": (
        "watch", [], {"huge_item": "info"},
        [("forced", "summarizer_failed"), ("forced", "reduced"), ("forced", "nothing_foldable")],
        "3,750 tokens",
    ),
    "real-exhausted": (
        "stalled", [],
        {
            "summarizer_failing": "critical", "stalled": "critical", "over_budget": "warning",
            "jump": "warning", "refused": "info",
        },
        [("proactive", "summarizer_failed")] * 3,
        "46,542 input tokens without a result",
    ),
    "real-overflow": (
        "over", [],
        {"over_window": "critical", "summarizer_failing": "warning", "huge_item": "info"},
        [("reactive", "reduced"), ("reactive", "summarizer_failed")],
        "Maka's compaction always calls the summarizer, which fails",
    ),
    "structural-latch": (
        "blocked", [("structural", False)],
        {
            "latched_unjustified": "critical", "over_window": "critical", "jump": "warning",
            "huge_item": "info",
        },
        [("proactive", "nothing_foldable"), ("reactive", "unknown")],
        "Stop the turn where it still runs, as its latch ends with it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(EXPECTED))
def test_the_diagnosis_is_the_one_of_the_run(name: str) -> None:
    state, latches, findings, attempts, says = EXPECTED[name]
    found = story(read(name))
    row = found.row
    assert row.state == state
    assert [(latch.kind, latch.justified) for latch in row.latches] == latches
    assert {finding.code: finding.severity for finding in row.findings} == findings
    told = [(a.trigger, a.outcome.value) for a in found.state.compactions.recent]
    assert told == attempts
    assert says in row.headline


@pytest.mark.parametrize("name", list(EXPECTED))
def test_no_text_of_the_user_is_in_it(name: str) -> None:
    for event in read(name):
        assert not {"text", "excerpt", "title"} & set(event) or event["type"] == "note"


def test_the_load_is_what_the_provider_counted() -> None:
    assert story(read("real-healthy")).row.load.value == 10_887
