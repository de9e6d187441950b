"""What a real Agent Zero reported, replayed: the diagnosis of each stream is the one expected.

The streams come from test_real.py; see recording.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxhealth.cli.replayed import Replay
from ctxhealth.cli.streams import read_stream
from ctxhealth.wire import decode_event
from tests.agents.agent_zero.recording import FOLDER
from tests.incidents.comparing import compare

STREAMS = sorted(FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
def test_the_diagnosis_is_the_expected_one(stream: Path) -> None:
    expected = json.loads(stream.with_suffix(".expect.json").read_text("utf-8"))
    replay = Replay()
    for line in read_stream(stream):
        replay.take(line)
    assert [told for check in expected["checks"] for told in compare(replay, check)] == []


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
def test_every_event_is_one_of_the_protocol(stream: Path) -> None:
    for line in read_stream(stream):
        decode_event(json.dumps(line, separators=(",", ":")).encode())


def test_there_is_a_stream_of_every_incident() -> None:
    told = {path.stem for path in STREAMS}
    assert {"quota", "recovered", "empty", "no-call", "overflow", "loop"} <= told


def test_no_stream_tells_of_the_machine_it_was_made_on() -> None:
    for path in STREAMS:
        text = path.read_text("utf-8")
        assert not any(word in text for word in ("/tmp", "/home", "/root", "site-packages")), path
