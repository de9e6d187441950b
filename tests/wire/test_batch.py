"""A frame taken as a whole says what its events say one by one, or is not taken as a whole."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxhealth.wire import decode_batch, decode_event
from ctxhealth.wire.canonical import canonicalise, loads
from ctxhealth.wire.decode import SHRINKING, never_grows
from ctxhealth.wire.events import (
    ChatOpened,
    CommandProgress,
    MessageAdded,
    ModelReplied,
    ServerTick,
)
from ctxhealth.wire.frames import AGENT_FRAME, Events
from ctxhealth.wire.limits import EVENT_BYTES

MESSAGE = '{"seq":1,"type":"message.added","ts":5,"chat":"c","id":"m","role":"user","kind":"text"'
REPLY = '{"seq":2,"type":"model.replied","ts":6,"chat":"c","request":"r"'


def frame(*events: str, epoch: str = '"e1"') -> str:
    return f'{{"type":"events","epoch":{epoch},"events":[{",".join(events)}]}}'


def test_plain_events_are_taken_together_with_the_bodies_they_have_alone() -> None:
    sent = [f'{MESSAGE},"text":"a \\"b\\":c\\n"}}', f'{REPLY},"content":{{"text_chars":3}}}}']
    batch = decode_batch(frame(*sent))
    assert batch is not None
    assert batch.epoch == "e1"
    alone = [decode_event(raw.encode()) for raw in sent]
    assert batch.events == [decoded.event for decoded in alone]
    assert batch.bodies == [decoded.body for decoded in alone]


def test_characters_of_several_bytes_count_as_bytes() -> None:
    batch = decode_batch(frame(f'{MESSAGE},"text":"\u00e4\u20ac\U0001f600"}}', epoch='"\u00e9"'))
    assert batch is not None
    assert batch.epoch == "\u00e9"


@pytest.mark.parametrize(
    "event",
    [
        f'{MESSAGE},"colour":1}}',
        f'{MESSAGE},"tokens":null}}',
        f'{MESSAGE},"tokens":1,"tokens":2}}',
        f'{MESSAGE},"text":"a\\u0000"}}',
        f'{MESSAGE},"text":"a\\/b"}}',
        f'{MESSAGE},"tokens": 1}}',
        f'{MESSAGE},"tokens":-0}}',
        f'{MESSAGE},"tokens":1e3}}',
        f'{MESSAGE},"tokens":-1}}',
        f'{REPLY},"purpose":"chat"}}',
        f'{REPLY},"usage":{{"dialect":"openai","audio":3}}}}',
        '{"seq":1,"type":"command.progress","ts":5,"command":"k","state":"sent","detail":1e9}',
        '{"seq":1,"type":"chat.opened","ts":5,"chat":"c","trigger":{"ratio":1},"x":1}',
        '{"seq":1,"type":"dream.started","ts":5}',
        '{"seq":1,"type":"server.tick","ts":5,"chat":"c"}',
    ],
)
def test_one_event_that_is_not_plain_leaves_the_frame_to_be_read_event_by_event(event: str) -> None:
    assert decode_batch(frame(f"{MESSAGE}}}")) is not None
    assert decode_batch(frame(f"{MESSAGE}}}", event)) is None


def test_what_shrinks_elsewhere_does_not_hide_what_was_lost_in_an_event() -> None:
    assert decode_batch(frame(f'{MESSAGE},"x":1}}', f"{REPLY}}}", epoch=' "e1"')) is None
    assert decode_batch(frame(f"{MESSAGE}}}").replace('"epoch"', '"extra":1,"epoch"')) is None


def test_an_event_over_the_limit_is_not_taken_with_others() -> None:
    ids = ",".join(f'"{"k" * 190}{number:09}"' for number in range(400))
    assert decode_batch(frame(f"{MESSAGE}}}", f'{MESSAGE},"calls":[{ids}]}}')) is None
    many = [f'{MESSAGE},"text":"{"a" * (EVENT_BYTES // 4)}"}}' for _ in range(5)]
    assert decode_batch(frame(*many)) is not None


def test_other_frames_and_empty_ones_are_none_of_its_business() -> None:
    assert decode_batch('{"type":"hb","now":1}') is None
    assert decode_batch(frame()) is None
    assert decode_batch("nonsense") is None


def test_a_blank_before_a_colon_hides_no_unknown_field() -> None:
    sent = '{"seq" :1,"type":"chat.opened","ts":5,"chat":"c","x":1}'
    assert json.loads(decode_event(sent.encode()).body)["x"] == 1


def test_only_types_without_fractions_and_free_values_are_proved_by_length() -> None:
    assert {MessageAdded, ModelReplied} <= SHRINKING
    assert not {ChatOpened, CommandProgress, ServerTick} & SHRINKING

    class Written(msgspec.Struct):
        absent: int | None = None

    assert not never_grows(Written)
    assert not never_grows(list[dict[str, float]])


NUMBERS = st.sampled_from(["0", "7", "-0", "1.0", "1e2", "1E15", "null", "true", '"x"', "[]"])
KEYS = st.sampled_from(
    ["tokens", "text", "calls", "name", "read", "x", "usage", "purpose", "tex\\u0074", "ratio"]
)
BLANK = st.sampled_from(["", "", "", " ", "\n", "\t"])


@given(
    st.lists(
        st.tuples(
            st.sampled_from([MESSAGE, REPLY]),
            st.lists(st.tuples(BLANK, KEYS, BLANK, BLANK, NUMBERS), max_size=4),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_frame_taken_whole_has_lost_nothing_of_any_event(
    parts: list[tuple[str, list[tuple[str, str, str, str, str]]]],
) -> None:
    events = [
        start
        + "".join(f'{one},{one}"{key}"{two}:{three}{value}' for one, key, two, three, value in more)
        + "}"
        for start, more in parts
    ]
    text = frame(*events)
    batch = decode_batch(text)
    if batch is None:
        return
    plain: Any = AGENT_FRAME.decode(text)
    assert isinstance(plain, Events)
    for raw, event, body in zip(plain.events, batch.events, batch.bodies, strict=True):
        kept, replaced = canonicalise(loads(bytes(raw)))
        assert replaced == 0
        assert json.loads(body) == kept
        assert decode_event(bytes(raw)).event == event
