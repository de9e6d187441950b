"""The fold as a machine: the same however it is cut, bounded, and never raising."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxhealth.core.changes import Changes
from ctxhealth.core.deadlines import next_deadline
from ctxhealth.core.fold import Stamp, fold, fold_rejected, new_state
from ctxhealth.core.rules import default_rules
from ctxhealth.core.state import ChatState, decode_state, encode_state
from ctxhealth.core.view import detail, summary
from ctxhealth.wire.events import (
    Event,
    ServerCommand,
    ServerConnected,
    ServerDisconnected,
    ServerTick,
    UnknownEvent,
)

from .story import Story, wire_event

RULES = default_rules()
few = st.sampled_from
sizes = st.none() | st.integers(0, 400_000)
ids = few(["a", "b", "c", "d"])
words = st.none() | st.text(max_size=12)


def event_of(type: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Event]:
    return st.fixed_dictionaries({}, optional=fields).map(
        lambda given: wire_event(type, **_required(type, given))
    )


def _required(type: str, given: dict[str, Any]) -> dict[str, Any]:
    needs: dict[str, dict[str, Any]] = {
        "turn.started": {"turn": "a"},
        "turn.ended": {"turn": "a", "outcome": "answered"},
        "message.added": {"id": "a", "role": "user", "kind": "text"},
        "history.snapshot": {"revision": "a"},
        "request.sent": {"request": "a"},
        "model.replied": {"request": "a"},
        "model.failed": {"request": "a", "error": "other"},
        "compaction.started": {"attempt": "a", "trigger": "proactive"},
        "compaction.finished": {"attempt": "a", "reported": "ok"},
        "latch.set": {"latch": "a", "scope": "turn"},
        "latch.cleared": {"latch": "a", "how": "operator"},
        "guard.refused": {"count": 10, "limit": 5},
        "reply.empty": {"n": 1},
        "agent.stopped": {"reason": "done"},
        "usage.update": {"used": 1},
        "command.progress": {"command": "a", "state": "succeeded"},
        "gap": {"count": 1, "reason": "full"},
        "note": {"text": "x"},
    }
    return {**needs.get(type, {}), **given}


usages = st.fixed_dictionaries(
    {"dialect": few(["anthropic", "openai", "codex", "gemini", "llamacpp", "otel"])},
    optional={
        name: st.integers(0, 400_000)
        for name in ("input", "output", "cache_read", "cache_write", "total")
    },
)
contents = st.fixed_dictionaries(
    {},
    optional={name: st.integers(0, 5) for name in ("text_chars", "tool_calls", "thinking_chars")},
)
triggers = st.fixed_dictionaries(
    {},
    optional={
        "tokens": st.integers(0, 300_000),
        "ratio": st.floats(0, 1),
        "inclusive": st.booleans(),
        "scope": few(["prompt", "history"]),
    },
)
members = st.lists(
    st.fixed_dictionaries(
        {"id": ids, "role": few(["user", "assistant", "tool"]), "kind": few(["text", "tool_call"])},
        optional={
            "tokens": st.integers(0, 90_000),
            "calls": st.lists(ids, max_size=2),
            "answers": st.lists(ids, max_size=2),
        },
    ),
    max_size=4,
)
summarizers = st.fixed_dictionaries(
    {},
    optional={
        "calls": st.integers(0, 3),
        "input": st.integers(0, 90_000),
        "output": st.integers(0, 500),
        "error": few(["quota", "empty", "timeout", "other"]),
        "model": st.just("small"),
    },
)
scopes = few(["prompt", "history"])
COMMAND_STATES = few(["queued", "received", "started", "succeeded", "failed", "refused"])
KINDS = few(["compact_fallback", "clear_latch", "continue", "ping"])

FACTS = {
    "model": few(["claude-sonnet-4-5", "gpt-5", "nobody-knows"]),
    "window": st.integers(0, 400_000),
    "reserve": st.integers(0, 400_000),
    "max_input": st.integers(0, 400_000),
    "trigger": triggers,
    "history_limit": st.integers(0, 200_000),
    "system": st.integers(0, 90_000),
    "tools": st.integers(0, 90_000),
    "bytes_limit": st.integers(0, 900_000),
    "title": st.text(max_size=10),
}
EVENTS = st.one_of(
    event_of("chat.opened", **FACTS),
    event_of("chat.updated", **FACTS),
    event_of("chat.closed"),
    event_of("turn.started", turn=ids, kind=few(["user", "task", "continuation"])),
    event_of(
        "turn.ended",
        turn=ids,
        outcome=few(["answered", "silent", "stopped", "error", "cancelled"]),
        error=st.text(max_size=10),
    ),
    event_of(
        "message.added",
        id=ids,
        role=few(["user", "assistant", "tool"]),
        kind=few(["text", "tool_call", "tool_result", "summary"]),
        tokens=st.integers(0, 200_000),
        calls=st.lists(ids, max_size=2),
        answers=st.lists(ids, max_size=2),
        topic=ids,
        unusable=few(["malformed", "repeated"]),
        hash=ids,
    ),
    event_of(
        "history.snapshot",
        revision=ids,
        part=st.integers(1, 3),
        parts=st.integers(1, 3),
        system=st.integers(0, 90_000),
        history=st.integers(0, 300_000),
        protected=st.integers(0, 90_000),
        order=members,
        topics=st.lists(
            st.fixed_dictionaries({"id": ids}, optional={"tokens": st.integers(0, 90_000)}),
            max_size=2,
        ),
        current=st.fixed_dictionaries({}, optional={"tokens": st.integers(0, 90_000)}),
    ),
    event_of(
        "request.sent",
        request=ids,
        purpose=few(["chat", "utility"]),
        local=st.integers(0, 300_000),
        max_output=st.integers(0, 200_000),
        bytes=st.integers(0, 900_000),
        delta=st.booleans(),
    ),
    event_of(
        "model.replied",
        request=ids,
        purpose=few(["chat", "utility"]),
        usage=usages,
        content=contents,
        finish=few(["stop", "length"]),
        synthetic=st.booleans(),
        ms=st.integers(0, 90_000),
        model=few(["claude-sonnet-4-5", "gpt-5"]),
    ),
    event_of(
        "model.failed",
        request=ids,
        error=few(["overflow", "quota", "invalid", "too_large", "other"]),
        purpose=few(["chat", "utility"]),
        detail=few(["tool_use toolu_0abcdef without tool_result", "no"]),
        stated_window=st.integers(0, 300_000),
        stated_prompt=st.integers(0, 300_000),
    ),
    event_of(
        "compaction.started",
        attempt=ids,
        trigger=few(["proactive", "reactive", "manual", "forced"]),
        scope=scopes,
        before=st.integers(0, 300_000),
        lease_s=st.integers(1, 900),
    ),
    event_of(
        "compaction.finished",
        attempt=ids,
        reported=few(["ok", "failed", "cancelled", "skipped", "nothing_foldable"]),
        reason=few(["no_safe_completed_span", "whatever"]),
        scope=scopes,
        before=st.integers(0, 300_000),
        after=st.integers(0, 300_000),
        after_scope=scopes,
        summarizer=summarizers,
        removed=st.lists(ids, max_size=3),
        emptied=st.booleans(),
        lossy=st.booleans(),
        meanwhile=st.integers(0, 5_000),
    ),
    event_of(
        "latch.set",
        latch=ids,
        scope=few(["step", "send", "turn", "chat", "process"]),
        kind=few(["structural", "summarizer", "cooldown", "lock_held", "exhausted", "open_call"]),
        attempt=ids,
        bypass=st.lists(few(["overflow", "manual"]), max_size=2),
        release=st.fixed_dictionaries({}, optional={"until": st.integers(0, 9_000_000)}),
    ),
    event_of("latch.cleared", latch=ids),
    event_of("guard.refused", count=st.integers(0, 300_000), limit=st.integers(0, 300_000)),
    event_of("reply.empty", n=st.integers(0, 6), prompt=st.integers(0, 300_000)),
    event_of("agent.stopped", count=st.integers(0, 9), limit=st.integers(0, 9)),
    event_of("usage.update", used=st.integers(0, 300_000), size=st.integers(0, 300_000)),
    event_of("command.progress", command=ids, state=COMMAND_STATES),
    event_of("gap", count=st.integers(1, 9)),
    event_of("note", code=few(["unreadable_line", "rejected", "other"])),
    st.builds(
        ServerConnected,
        seq=st.just(1),
        ts=st.just(0),
        conn_no=st.integers(0, 5),
        read_only=st.booleans(),
        commands=st.just(["compact_fallback"]),
        skew_ms=st.none() | st.integers(-90_000, 90_000),
        epoch=st.none() | ids,
    ),
    st.builds(ServerDisconnected, seq=st.just(1), ts=st.just(0), conn_no=st.integers(0, 5)),
    st.builds(ServerTick, seq=st.just(1), ts=st.just(0)),
    st.builds(
        ServerCommand,
        seq=st.just(1),
        ts=st.just(0),
        command=ids,
        kind=KINDS,
        state=COMMAND_STATES,
    ),
    st.builds(UnknownEvent, seq=st.just(1), ts=st.just(0), type=st.just("later.kind")),
)
STREAMS = st.lists(st.tuples(EVENTS, st.integers(-1_000, 700_000)), max_size=40)


# What one event changed, as the store would write it.
Told = tuple[Any, ...]


def run(
    state: ChatState,
    stream: list[tuple[Event, int]],
    first: int = 0,
    told: list[Told] | None = None,
) -> list[Changes]:
    """Fold a stream; times are steps, so that some events come out of order."""
    done: list[Changes] = []
    at = 1_000_000 + sum(step for _, step in stream[:first])
    for index in range(first, len(stream)):
        event, step = stream[index]
        at += step
        changes = Changes()
        fold(state, event, Stamp(index + 1, at), changes, RULES)
        done.append(changes)
        if told is not None:
            told.append(
                (
                    dict(changes.findings),
                    changes.attempts,
                    changes.latches,
                    changes.items,
                    changes.readings,
                    changes.commands,
                    changes.oddities,
                )
            )
    return done


@settings(max_examples=300, deadline=None)
@given(STREAMS, st.data())
def test_a_fold_cut_anywhere_and_carried_on_from_bytes_is_the_same(
    stream: list[tuple[Event, int]], data: st.DataObject
) -> None:
    whole, cut = new_state("c", 0), new_state("c", 0)
    told: list[Told] = []
    run(whole, stream, told=told)
    at = data.draw(st.integers(0, len(stream)))
    run(cut, stream[:at])
    again = decode_state(encode_state(cut))
    rest: list[Told] = []
    run(again, stream, at, told=rest)
    assert again == whole
    assert encode_state(again) == encode_state(whole)
    assert rest == told[at:]
    assert summary(again, RULES) == summary(whole, RULES)


@settings(max_examples=300, deadline=None)
@given(STREAMS)
def test_no_order_of_events_breaks_the_fold_or_what_is_shown(
    stream: list[tuple[Event, int]],
) -> None:
    state = new_state("c", 0)
    for changes in run(state, stream):
        assert [odd for odd in changes.oddities if "internal" in odd] == []
        assert all(view.sentence.endswith(".") for view in changes.findings.values())
    shown = detail(state, RULES, None)
    load = shown.summary.load.value if shown.summary.load.reliable else None
    if load is not None:
        assert sum(part.tokens for part in shown.summary.segments) == load
    assert all(part.tokens > 0 for part in shown.summary.segments)
    assert shown.headline
    due = next_deadline(state, RULES)
    assert due is None or due > state.ticked_at


def test_a_rejected_event_is_counted_and_shown() -> None:
    story = Story().opened()
    fold_rejected(story.state, "schema", Stamp(9, 9_000), story.changes, story.rules)
    assert story.row.rejects == 1
    assert "rejected_events" in story.codes()


def test_an_event_of_an_unknown_type_changes_nothing_but_the_time() -> None:
    story = Story().opened()
    before = story.row
    story.put(UnknownEvent(seq=1, ts=0, type="later.kind"))
    assert story.row.findings == before.findings
    assert story.row.last_event_at == story.at


def test_the_state_does_not_grow_with_the_chat() -> None:
    def size_after(turns: int) -> int:
        story = Story().opened()
        for index in range(turns):
            story.turn(f"t{index}")
            story.message(1_000 + index % 50, calls=[f"c{index}"], role="assistant")
            story.message(2_000 + index % 70, answers=[f"c{index}"], role="tool")
            story.reply(50_000 + index % 7)
            story.ends(turn=f"t{index}")
        return len(encode_state(story.state))

    # Longer ids make it a little larger; a list that grows would make it four times as large.
    assert size_after(600) <= size_after(150) * 1.2


@pytest.mark.parametrize("total", [64, 400])
def test_open_calls_are_capped_and_the_lost_ones_counted(total: int) -> None:
    story = Story().opened()
    for index in range(total):
        story.message(10, role="assistant", kind="tool_call", calls=[f"c{index}"])
    assert len(story.state.history.open_calls) == 64
    assert story.state.history.calls_lost == total - 64
