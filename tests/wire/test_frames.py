from __future__ import annotations

import msgspec
import pytest

from ctxhealth.wire import frames


def test_hello_needs_protocols_agent_and_epoch() -> None:
    sent = b'{"type":"hello","protocols":[1],"agent":"a","epoch":"e","caps":{"fallback":"engine"}}'
    hello = frames.AGENT_FRAME.decode(sent)
    assert isinstance(hello, frames.Hello)
    assert hello.caps.fallback == "engine"
    with pytest.raises(msgspec.ValidationError):
        frames.AGENT_FRAME.decode(b'{"type":"hello","protocols":[1],"agent":"a"}')


def test_events_keep_each_event_raw_so_that_a_bad_one_spoils_no_other() -> None:
    frame = frames.AGENT_FRAME.decode(b'{"type":"events","epoch":"e","events":[{"seq":1},7]}')
    assert [bytes(event) for event in frame.events] == [b'{"seq":1}', b"7"]


def test_more_than_a_hundred_events_in_a_frame_are_refused() -> None:
    body = b",".join([b"{}"] * 101)
    with pytest.raises(msgspec.ValidationError):
        frames.AGENT_FRAME.decode(b'{"type":"events","epoch":"e","events":[' + body + b"]}")


def test_server_frames_use_the_names_of_the_protocol() -> None:
    resend = msgspec.json.encode(frames.Resend(epoch="e", from_=7))
    assert msgspec.json.decode(resend) == {"type": "resend", "epoch": "e", "from": 7}
    ack = msgspec.json.encode(frames.Ack(epoch="e", upto=9))
    assert msgspec.json.decode(ack) == {"type": "ack", "epoch": "e", "upto": 9}
