"""Every frame and event that the client can build is what ``wire`` decodes, field by field."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ctxhealth.client import limits
from ctxhealth.client.chat import Chat
from ctxhealth.client.commands import KINDS
from ctxhealth.client.connection import Hello, events_frame
from ctxhealth.client.outbox import Outbox
from ctxhealth.wire import decode_event
from ctxhealth.wire import limits as wire_limits
from ctxhealth.wire.events import AGENT_TYPES, EVENT_TYPES, UnknownEvent
from ctxhealth.wire.frames import AGENT_FRAME, Events
from ctxhealth.wire.types import CommandKind
from tests.client.conftest import Make
from tests.client.server import Server

_TRIGGER = {"tokens": 140_000, "inclusive": False, "scope": "history"}
FACTS: dict[str, Any] = {
    "title": "A chat", "model": "gpt-5", "provider": "openai", "parent": "p", "window": 400_000,
    "max_input": 272_000, "max_output": 128_000, "reserve": 4_096, "trigger": _TRIGGER,
    "history_limit": 140_000, "bytes_limit": 1_000_000, "tokenizer": "o200k", "system": 5_000,
    "tools": 9_000, "utility": {"model": "mini", "provider": "openai", "window": 128_000},
    "labels": {"team": "red"},
}  # fmt: skip
USAGE = {
    "dialect": "anthropic", "input": 9, "output": 8, "cache_read": 7, "cache_write": 6,
    "reasoning": 5, "total": 35,
    "iterations": [{"type": "message", "input": 1, "output": 2, "cache_read": 3, "cache_write": 4}],
}  # fmt: skip
SUMMARIZER = {
    "model": "mini", "provider": "openai", "window": 128_000, "calls": 1, "input": 5, "output": 0,
    "error": "empty", "detail": "blank",
}  # fmt: skip
SNAPSHOT: dict[str, Any] = {
    "system": 1, "tools": 2, "extras": 3, "protected": 4, "images": 5, "request_bytes": 6,
    "history": 7, "bulks": [{"id": "b", "tokens": 1, "records": 3, "excerpt": "x"}],
    "topics": [
        {"id": "t", "tokens": 9, "messages": 2, "title": "T", "summarised": False, "largest": 5}
    ],
    "current": {"tokens": 3, "messages": 1},
    "order": [
        {"id": "m", "role": "tool", "kind": "tool_result", "tokens": 3, "in": "current",
         "calls": ["c1"], "answers": ["c0"], "name": "bash", "read": False}
    ],
}  # fmt: skip


def report_everything(chat: Chat) -> None:
    """Every method with every field the protocol has for it."""
    chat.updated(**FACTS)
    turn = chat.turn_started("turn-1", "user")
    chat.message_added(
        "m1", "assistant", "tool_call", tokens=5, text="hello", calls=["k1"], answers=["k0"],
        name="bash", turn=turn, topic="t1", read=True, unusable="repeated", bytes=5, hash="ab",
    )  # fmt: skip
    chat.history_snapshot("rev-1", **SNAPSHOT)
    request = chat.request_sent(
        "r1", purpose="chat", local=100, max_output=50, bytes=9, images=1, attempt="a0",
        revision="rev-1", delta=False,
    )  # fmt: skip
    chat.model_replied(
        request, usage=USAGE, finish="stop", purpose="chat", model="gpt-5", synthetic=False, ms=9,
        content={"text_chars": 1, "tool_calls": 2, "thinking_chars": 3, "data": 4},
    )  # fmt: skip
    chat.model_failed(
        request, "overflow", status=400, code="context_length_exceeded", detail="too long",
        stated_window=100, stated_prompt=101, ms=5, purpose="utility",
    )  # fmt: skip
    attempt = chat.compaction_started(
        "a1", "proactive", before=10, scope="history", phase="pre_turn", input_hash="h",
        lease_s=60, revision="rev-1",
    )  # fmt: skip
    chat.compaction_finished(
        attempt, "stalled", before=10, after=10, scope="history", reason="empty",
        after_scope="history", steps=[{"step": "summary", "before": 10, "after": 10, "calls": 1}],
        summarizer=SUMMARIZER, removed=["m0"], input_hash="h", revision="rev-2", meanwhile=5,
        added=[{"id": "b1", "kind": "summary", "tokens": 4, "in": "b1"}], lossy=True,
        emptied=False, backup="x.json", trigger="proactive", inferred=False, ms=12,
    )  # fmt: skip
    latch = chat.latch_set(
        "L1", "turn", kind="structural", reason="nothing foldable", attempt=attempt, key="h",
        tokens=10, bypass=["manual"],
        release={"until": 5, "growth": 6, "input_changed": True, "turn_end": True, "success": True},
        holder={"id": "1", "host": "a", "since": 1, "alive": True},
    )  # fmt: skip
    chat.latch_cleared(latch, "operator", "k1")
    chat.guard_refused(196_602, 192_512, window=196_608, reserve=4_096)
    chat.reply_empty(2, request=request, prompt=1, completion=0, finish="stop", retried=True)
    chat.agent_stopped("5 unusable replies", count=5, limit=5)
    chat.usage_update(53_000, 200_000)
    chat.command_progress("k1", "succeeded", reason="r", before=9, after=3, backup="b", detail={})
    chat.note("a note", "warning", code="x", count=2)
    chat.gap(3, "reader fell behind")
    chat.turn_ended(turn, "stopped", "gave up")
    chat.closed("done")


@pytest.fixture
def reported(server: Server, make: Make) -> list[dict[str, Any]]:
    reporter = make(text="full")
    report_everything(reporter.chat("c", **FACTS))
    assert reporter.flush(10)
    return server.stream()


def test_every_type_of_the_protocol_can_be_reported(reported: list[dict[str, Any]]) -> None:
    assert {event["type"] for event in reported} == AGENT_TYPES


def test_every_event_decodes_as_its_own_struct(reported: list[dict[str, Any]]) -> None:
    for event in reported:
        decoded = decode_event(json.dumps(event).encode())
        assert type(decoded.event) is EVENT_TYPES[event["type"]]


def test_no_field_is_lost_or_misnamed_on_the_way(reported: list[dict[str, Any]]) -> None:
    for event in reported:
        decoded = decode_event(json.dumps(event).encode()).event
        assert not isinstance(decoded, UnknownEvent)
        known = msgspec.to_builtins(decoded)
        unknown = event.keys() - known.keys() - _defaults(event["type"])
        assert not unknown, f"{event['type']}: {unknown}"


def test_every_field_of_every_struct_was_reported(reported: list[dict[str, Any]]) -> None:
    for kind in AGENT_TYPES:
        fields = {field.encode_name for field in msgspec.structs.fields(EVENT_TYPES[kind])}
        seen = {key for event in reported if event["type"] == kind for key in event}
        # Only a snapshot in parts has these; test_bodies splits one.
        assert fields - seen <= {"part", "parts"}, kind


def test_hello_is_what_the_server_decodes_and_small_enough(tmp_path: Any) -> None:
    outbox = Outbox(None)
    caps = {"commands": list(KINDS), "fallback": "engine", "text": "full", "read_only": True}
    frame = Hello("a" * 200, "r" * 200, "v" * 200, "sdk", caps).frame(outbox)
    hello = AGENT_FRAME.decode(frame)
    assert hello.caps.commands == list(KINDS) and hello.epoch == outbox.epoch
    assert len(frame) <= wire_limits.HELLO_BYTES
    outbox.close()


def test_an_events_frame_decodes_with_its_events_raw() -> None:
    batch = [(7, b'{"type":"note","ts":1,"text":"x"}'), (8, b'{"type":"note","ts":1,"text":"y"}')]
    frame = AGENT_FRAME.decode(events_frame("epoch", batch))
    assert isinstance(frame, Events)
    assert [decode_event(bytes(raw)).event.seq for raw in frame.events] == [7, 8]


def test_beats_and_bye_decode(server: Server, make: Make) -> None:
    # The test server decodes every frame with the server's own decoder and would drop the line.
    reporter = make()
    reporter.note("x")
    assert reporter.flush(10)
    reporter.close()
    assert server.byes


def test_the_clients_limits_and_kinds_are_the_protocols() -> None:
    for name in ("EVENT_BYTES", "FRAME_BYTES", "BATCH_EVENTS", "INFLIGHT_EVENTS", "INFLIGHT_BYTES"):
        assert getattr(limits, name) == getattr(wire_limits, name)
    for name in dir(wire_limits):
        if name.startswith("CLOSE_"):
            assert getattr(limits, name) == getattr(wire_limits, name)
    assert limits.PROTOCOL == wire_limits.PROTOCOL and limits.DEPTH == wire_limits.JSON_DEPTH
    assert CommandKind.__args__ == KINDS  # type: ignore[attr-defined]


def _defaults(kind: str) -> set[str]:
    """Fields that a decoded Struct leaves out because they hold their default."""
    found = {"type"}
    for field in msgspec.structs.fields(EVENT_TYPES[kind]):
        if field.default is not msgspec.NODEFAULT or field.default_factory is not msgspec.NODEFAULT:
            found.add(field.encode_name)
    return found
