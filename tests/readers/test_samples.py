"""Real session files, where they are: their loads, compactions and troubles as measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.readers.base import Event
from ctxhealth.readers.registry import HEAD_BYTES, sniff
from tests.readers.session import check, loads, of, read

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


def fed(path: Path) -> tuple[Any, list[Event]]:
    """Any format's file through the reader that its first rows choose."""
    lines = path.read_bytes().splitlines()
    found = sniff(path.read_bytes()[:HEAD_BYTES])
    assert found is not None and found.make is not None
    reader = found.make(path.stem)
    events = [event for line in lines for event in reader.feed(line)] + reader.finish()
    check(events)
    return reader, events


def asked(events: list[Event]) -> list[int]:
    """The prompt of every request in order, those of summaries among them."""
    found = []
    for event in events:
        if event["type"] == "model.replied":
            found += loads([event])
        elif event["type"] == "compaction.finished" and "input" in event.get("summarizer", {}):
            found.append(event["summarizer"]["input"])
    return found


def test_codex_a_guess_of_three_windows_is_no_load(samples_dir: Path) -> None:
    reader, events = fed(samples_dir / "codex.rollout-12-54-34.jsonl")
    assert len(loads(events)) == 286 and loads(events)[-1] == 162_073
    assert max(loads(events)) == 209_950
    (finished,) = of(events, "compaction.finished")
    # 212,134 is the last prompt with its reply; 48,687 what the next reply makes of 48,297.
    assert (finished["before"], "after" in finished) == (212_134, False)
    assert measured(events) == [(212_134, 48_297)]
    assert [event["used"] for event in of(events, "usage.update")] == [940_499, 940_499]
    assert not finished.get("emptied") and not of(events, "model.failed")
    assert [e["outcome"] for e in of(events, "turn.ended")] == ["answered"] * 33
    assert reader.counts["unreadable"] == 0


def test_codex_a_call_without_output_at_the_end_is_unfinished(samples_dir: Path) -> None:
    _, events = fed(samples_dir / "codex.rollout-12-47-42.jsonl")
    assert loads(events)[-1] == 143_372
    assert [e["outcome"] for e in of(events, "turn.ended")].count("cancelled") == 1
    assert not of(events, "note") and not of(events, "compaction.finished")


def test_pi_two_compactions_and_a_refusal_of_a_broken_pair(samples_dir: Path) -> None:
    reader, events = fed(samples_dir / "pi-mono.before-compaction.jsonl")
    # With the replies to them, 432 and 394 tokens, that is 26,171 and 29,011.
    assert measured(events) == [(175_004, 25_739), (185_014, 28_617)]
    refused = [e for e in of(events, "model.failed") if e["error"] != "cancelled"]
    assert [event["error"] for event in refused] == ["invalid"]
    assert "toolu_019tYDrbzifrra2KYzmYqWvk" in refused[0]["detail"]
    assert len(loads(events)) == 484 - 19 and 0 not in loads(events)
    assert len(of(events, "model.failed")) == 19
    assert reader.counts["unreadable"] == 0


def test_the_codex_sessions_give_what_is_expected_of_them(samples_dir: Path) -> None:
    expected = json.loads((samples_dir / "cli" / "expected.json").read_text())
    files = [path for path in (samples_dir / "cli").glob("codex*") if "otel" not in path.name]
    assert len(files) == 11
    for path in files:
        want = expected[path.name]
        reader, events = fed(path)
        assert asked(events) == want["loads"], path.name
        assert reader.counts["lines"] == want["lines"]
        windows = [e["window"] for e in of(events, "chat.updated") if "window" in e]
        assert windows == [want["window"]]
        shown = [e for e in of(events, "compaction.finished") if e["reported"] == "compacted"]
        assert len(shown) == len(want["compactions"])
        assert [bool(e.get("emptied")) for e in shown] == ["04dempty" in path.name] * len(shown)
        ended = of(events, "turn.ended")
        assert [e["error"] for e in ended if e["outcome"] == "error"] == [
            error["message"] for error in want["turn_errors"]
        ]
        manual = [e for e in shown if e["trigger"] == "manual"]
        silent = [e for e in ended if e["outcome"] == "silent"]
        assert len(manual) + len(silent) == want["null_replies"]


def test_the_pi_sessions_give_what_is_expected_of_them(samples_dir: Path) -> None:
    expected = json.loads((samples_dir / "cli" / "expected.json").read_text())
    files = list((samples_dir / "cli").glob("pi-*.jsonl"))
    assert len(files) == 7
    for path in files:
        want = expected[path.name]
        reader, events = fed(path)
        assert loads(events) == want["loads"], path.name
        assert reader.counts["lines"] == want["lines"]
        attempts = of(events, "compaction.finished")
        assert [event["stated_before"] for event in attempts] == [
            compaction["tokensBefore"] for compaction in want["compactions"]
        ]
        assert [bool(event.get("emptied")) for event in attempts] == [
            compaction["summary_chars"] == 100 for compaction in want["compactions"]
        ]
        assert len(of(events, "model.failed")) == len(want["errors"])
        empty = [event for event in of(events, "model.replied") if not event["content"]]
        assert len(empty) == want["empty"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("codex-0.171.0-04a500-auto-fail", [("failed", True), ("failed", True)]),
        ("codex-0.171.0-02r-remote-auto-ok", [("compacted", False)]),
        ("codex-0.171.0-05a-overflow-then-ok", []),
        # A failed compaction of pi leaves nothing, and nothing is made up.
        ("pi-1.6.0-04a500-auto-fail", []),
    ],
)
def test_what_a_failed_compaction_leaves_is_told_and_what_is_inferred_says_so(
    samples_dir: Path, name: str, told: list[tuple[str, bool]]
) -> None:
    _, events = fed(samples_dir / "cli" / f"{name}.jsonl")
    attempts = of(events, "compaction.finished")
    assert [(e["reported"], bool(e.get("inferred"))) for e in attempts] == told


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
