from __future__ import annotations

import pytest

from ctxhealth.wire import decode_event, decode_stored
from tests.wire.make_golden import DOCUMENT, FOLDER, document, streams

NAMES = ("healthy.jsonl", "agent-zero.jsonl")


def lines_of(name: str) -> list[bytes]:
    return (FOLDER / name).read_bytes().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_every_golden_event_decodes_and_keeps_its_sequence(name: str) -> None:
    for seq, line in enumerate(lines_of(name), 1):
        decoded = decode_event(line)
        assert decoded.event.seq == seq
        assert decode_stored(decoded.body) == decoded.event


def test_the_golden_streams_are_what_the_demo_agents_send_today() -> None:
    assert streams() == {name: lines_of(name) for name in NAMES}


def test_the_streams_are_documented_line_by_line() -> None:
    made = {name: lines_of(name) for name in NAMES}
    assert DOCUMENT.read_text("utf-8") == document(made)
