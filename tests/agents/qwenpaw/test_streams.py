"""What real runs of QwenPaw reported, replayed: every event is one of the protocol, and the
diagnosis is the one that the run deserved."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ctxhealth.cli.replayed import Replay
from ctxhealth.cli.streams import read_stream
from ctxhealth.wire import decode_event
from ctxhealth.wire.events import EVENT_TYPES
from tests.agents.qwenpaw.recording import STREAMS
from tests.incidents.comparing import compare

EXPECTED = json.loads((STREAMS / "expected.json").read_text("utf-8"))
NAMES = sorted(path.stem for path in STREAMS.glob("*.jsonl"))


def _stream(name: str) -> Path:
    return STREAMS / f"{name}.jsonl"


def test_every_stream_has_its_expectation() -> None:
    assert sorted(EXPECTED) == NAMES and len(NAMES) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_the_diagnosis_is_the_one_expected(name: str) -> None:
    replay = Replay(None)
    for line in read_stream(_stream(name)):
        replay.take(line)
    assert compare(replay, {"chat": "chat", **EXPECTED[name]}) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_event_is_one_of_the_protocol_without_a_field_it_does_not_know(name: str) -> None:
    for line in read_stream(_stream(name)):
        decode_event(json.dumps(line).encode())
        known = {field.encode_name for field in msgspec.structs.fields(EVENT_TYPES[line["type"]])}
        assert set(line) - {"type"} <= known, line


@pytest.mark.parametrize("name", NAMES)
def test_no_path_of_a_machine_and_no_text_of_a_chat_is_in_a_stream(name: str) -> None:
    raw = _stream(name).read_text("utf-8")
    assert "/tmp" not in raw and "/root" not in raw and "/home" not in raw
    assert '"excerpt"' not in raw and "alpha beta" not in raw
