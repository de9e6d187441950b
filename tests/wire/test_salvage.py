"""One bad event in a frame: the others are kept, and its place is known."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxhealth.wire import Reject, decode_event, salvage
from ctxhealth.wire.batch import decode_batch

GOOD = [
    {"seq": 1, "type": "chat.opened", "ts": 1, "chat": "c", "title": 'say "hi" [1], {2}'},
    {"seq": 2, "type": "note", "ts": 2, "chat": "c", "level": "info", "text": "],}{\\"},
    {"type": "note", "ts": 3, "seq": 3, "chat": "c", "level": "info", "text": "seq last"},
    {"seq": 4, "type": "chat.updated", "ts": 4, "chat": "c", "title": "x", "more": [{"id": "b"}]},
]


def texts() -> list[str]:
    return [json.dumps(event) for event in GOOD]


def framed(events: list[str], head: str = '"epoch":"e",', tail: str = "") -> str:
    return '{"type":"events",' + head + '"events":[' + ",".join(events) + "]" + tail + "}"


def raws(frame: str) -> list[str]:
    found = salvage(frame)
    assert found is not None
    assert found.epoch == "e"
    return [bytes(raw).decode() for raw in found.events]


def readable(raw: str) -> bool:
    try:
        decode_event(raw.encode())
    except Reject:
        return False
    return True


BAD_VALUES = ["NaN", "Infinity", '"\\q"', '"\\ud800"', "tru", "0x1", '"\x01"', "'x'", "[" * 2_000]


@pytest.mark.parametrize("value", BAD_VALUES)
@pytest.mark.parametrize("place", range(5))
def test_a_bad_value_costs_its_own_event_alone(value: str, place: int) -> None:
    bad = '{"seq":9,"type":"note","ts":1,"chat":"c","text":' + value + "}"
    events = texts()
    events.insert(place, bad)
    found = raws(framed(events))
    assert len(found) == 5
    assert found[:place] + found[place + 1 :] == texts()


@pytest.mark.parametrize(
    "bad",
    [
        '{"seq":9,"type":"note","ts":1,"text":"no end}',
        '{"seq":9,"type":"note","ts":1,"text":"x"',
        '{"seq":9,"type":"note","ts":1,"text":["x"}',
        '{"seq":9,"type":"note","ts":1}}',
        '"seq":9,"type":"note"}',
        '{"seq":9,"bulks":[{"id":"a"},{"id":"b"},{"id":"c}],"ts":1}',
        "]",
    ],
)
@pytest.mark.parametrize("place", range(5))
def test_brackets_and_quotes_that_do_not_match_end_at_the_next_event(bad: str, place: int) -> None:
    events = texts()
    events.insert(place, bad)
    found = raws(framed(events))
    assert [raw for raw in found if readable(raw)] == texts()
    assert len(found) == 5


def test_the_epoch_may_stand_behind_the_events() -> None:
    events = [*texts(), '{"seq":5,"x":NaN}']
    assert len(raws(framed(events, head="", tail=',"epoch":"e","more":[1]'))) == 5


@pytest.mark.parametrize(
    "frame",
    [
        "{",
        '{"type":"hb","now":NaN}',
        framed(texts(), head='"epoch":NaN,'),
        framed(texts(), head=""),
        framed(["NaN"] * 101),
        framed([])[:-2],
    ],
)
def test_an_envelope_that_cannot_be_read_is_no_frame(frame: str) -> None:
    assert salvage(frame) is None


def test_a_hostile_frame_is_read_in_bounded_time() -> None:
    import time

    for unit in (',{"a":[0', ',{"seq":1', "{[", '"', ',{"a":"', "[{"):
        frame = framed([(unit * 262_144)[:262_000].lstrip(",")])
        began = time.process_time()
        salvage(frame)
        assert time.process_time() - began < 3.0, unit


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 3), st.integers(0, 10_000), st.sampled_from('"\\{}[],:\x00x1'), st.booleans())
def test_any_single_corruption_keeps_every_other_event(
    which: int, at: int, char: str, delete: bool
) -> None:
    good = texts()
    event = good[which]
    start = event.index("chat")
    spot = start + at % (len(event) - start)
    bad = event[:spot] + ("" if delete else char) + event[spot + 1 :]
    frame = framed([*good[:which], bad, *good[which + 1 :]])
    if decode_batch(frame) is not None:
        return
    try:
        json.loads(frame)
    except ValueError:
        found = raws(frame)
        others = good[:which] + good[which + 1 :]
        kept = [raw for raw in found if raw in others]
        assert kept == others
        assert len(found) == 4


def test_frames_of_garbage_never_raise() -> None:
    chance = random.Random(7)
    for _ in range(500):
        body = "".join(chance.choices('{}[]",:\\ seqtypNa1', k=60))
        salvage('{"type":"events","epoch":"e","events":[' + body + "]}")
