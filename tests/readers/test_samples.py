"""Real session files, where they are: their loads, compactions and troubles as measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.readers.base import Event
from ctxhealth.readers.registry import HEAD_BYTES, sniff
from tests.readers.session import loads, of, read

CLI = "claude-code-2.1.332-*.jsonl"


def sample(samples_dir: Path, name: str) -> tuple[Any, list[Event], str]:
    (path,) = samples_dir.glob(f"*{name}*.jsonl")
    reader, events = read(path.read_bytes().splitlines())
    assert reader.chat is not None
    return reader, of_chat(events, reader.chat), reader.chat


def of_chat(events: list[Event], chat: str) -> list[Event]:
    return [event for event in events if event["chat"] == chat]


def measured(events: list[Event]) -> list[tuple[int, int]]:
    """(before, the first load after) of every compaction."""
    found = []
    for at, event in enumerate(events):
        if event["type"] == "compaction.finished":
            found.append((event["before"], loads(events[at:])[0]))
    return found


def test_one_automatic_compaction_and_13_replies_one_of_them_synthetic(samples_dir: Path) -> None:
    _, events, _ = sample(samples_dir, "a6e4c2a0fbd1")
    replies = of(events, "model.replied")
    assert len(replies) == 13
    assert len([reply for reply in replies if reply.get("synthetic")]) == 1
    assert len(loads(events)) == len(of(events, "request.sent")) == 12
    assert measured(events) == [(154_992, 49_761)]
    assert [event["outcome"] for event in of(events, "turn.ended")] == ["answered", "answered"]
    assert not of(events, "model.failed") and not of(events, "note")


def test_results_explain_the_jump_and_a_microcompaction_is_none(samples_dir: Path) -> None:
    _, events, _ = sample(samples_dir, "f9f6f611b469")
    assert measured(events) == [(176_700, 46_694)]
    assert [note["code"] for note in of(events, "note")] == ["microcompact"]
    assert 150_210 in loads(events)


def test_automatic_then_manual_with_a_count_below_the_accepted_load(samples_dir: Path) -> None:
    reader, events, _chat = sample(samples_dir, "5c5cb639eac4")
    assert measured(events) == [(167_895, 51_665), (149_310, 43_265)]
    assert [e["trigger"] for e in of(events, "compaction.finished")] == ["proactive", "manual"]
    assert [e["stated_before"] for e in of(events, "compaction.finished")] == [167_979, 149_025]
    assert not of(events, "model.failed")
    assert reader.counts["unreadable"] == 0
    assert 0 not in loads(events)


def test_six_sub_agents_are_six_child_chats(samples_dir: Path) -> None:
    (path,) = samples_dir.glob("*5c5cb639eac4*.jsonl")
    reader, events = read(path.read_bytes().splitlines())
    children = [event for event in of(events, "chat.opened") if event.get("parent")]
    assert len({event["chat"] for event in children}) == 6
    assert {event["parent"] for event in children} == {reader.chat}
    assert all(loads(events, event["chat"]) for event in children)


def test_two_objects_on_two_lines_each_are_four_rows(samples_dir: Path) -> None:
    reader, _, _ = sample(samples_dir, "8cfa910f8ef9")
    assert (reader.counts["lines"], reader.counts["rows"]) == (277, 279)
    assert reader.counts["unreadable"] == 0


def test_an_orphan_result_at_the_start_is_a_remark(samples_dir: Path) -> None:
    _, events, _ = sample(samples_dir, "e12c3e2b3f2a")
    assert measured(events) == [(156_192, 50_225)]
    (note,) = of(events, "note")
    assert (note["code"], note["level"], note["count"]) == ("truncated_start", "info", 1)


def test_the_cli_sessions_give_the_loads_and_compactions_expected(samples_dir: Path) -> None:
    expected = json.loads((samples_dir / "cli" / "expected.json").read_text())
    files = [path for path in (samples_dir / "cli").glob(CLI) if "otel" not in path.name]
    assert len(files) == 9
    for path in files:
        want = expected[path.name]
        reader, events = read(path.read_bytes().splitlines())
        assert loads(events) == want["loads"], path.name
        assert reader.counts["lines"] == want["lines"]
        assert reader.counts["unreadable"] == 0
        shown = [e for e in of(events, "compaction.finished")
                 if e["reported"] == "compact_boundary"]  # fmt: skip
        assert [
            (e["trigger"].replace("reactive", "proactive"), e["stated_before"], e["stated_after"])
            for e in shown
        ] == [
            (c["trigger"].replace("auto", "proactive"), c["preTokens"], c["postTokens"])
            for c in want["compactions"]
        ]
        failed = [event["detail"] for event in of(events, "model.failed") if "status" in event
                  or event["error"] != "other"]  # fmt: skip
        # An error row without a status is the program's own refusal: no call was made.
        refused = [error for error in want["api_errors"] if error["status"] is None]
        assert len(failed) == len(want["api_errors"]) - len(refused)
        assert len(of(events, "guard.refused")) == len(refused)
        cut = [e for e in of(events, "model.replied") if e.get("finish") == "max_tokens"]
        assert len(cut) == want["max_tokens"]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("04a500-auto-fail-below-block", ["not_recorded", "not_recorded"]),
        ("04a500-auto-fail", ["failed", "failed"]),
        ("04a500-manual-fail", ["failed"]),
        ("01-healthy", []),
    ],
)
def test_failed_compactions_are_known_by_what_they_leave(
    samples_dir: Path, name: str, kinds: list[str]
) -> None:
    path = samples_dir / "cli" / f"claude-code-2.1.332-{name}.jsonl"
    _, events = read(path.read_bytes().splitlines())
    attempts = of(events, "compaction.finished")
    assert [event["reported"] for event in attempts] == kinds
    assert [bool(event.get("inferred")) for event in attempts] == [
        kind == "not_recorded" for kind in kinds
    ]
    errors = [event["summarizer"]["error"] for event in attempts if "summarizer" in event]
    assert errors == ["provider"] * kinds.count("failed")


def test_every_sample_is_recognised_for_what_it_is(samples_dir: Path) -> None:
    def name(path: Path) -> str | None:
        found = sniff(path.read_bytes()[:HEAD_BYTES])
        return None if found is None else found.name

    for path in [*samples_dir.glob("*.json*"), *(samples_dir / "cli").glob("*.jsonl")]:
        if ".otel." in path.name:
            assert name(path) is None
        elif path.name.startswith("entire.ab2b9748b105") or path.name.startswith("gemini"):
            assert name(path) == "gemini"
        elif path.name.startswith(("entire", "claude-code")):
            assert name(path) == "claude-code"
        else:
            assert (name(path) or "").split("-")[0] == path.name.split("-")[0].split(".")[0]
