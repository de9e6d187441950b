"""A whole frame of plain events in one typed decode.

The proof that nothing in the frame is lost is its length: what a Struct drops or rewrites makes
its JSON shorter, never longer (``never_grows``). So where all bodies together are as long as the
frame was, each of them says what its event said. Every other frame, and every frame that does
not decode, is looked at event by event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from ctxhealth.wire.decode import SHRINKING
from ctxhealth.wire.events import AgentEvent, Event
from ctxhealth.wire.limits import BATCH_EVENTS, EVENT_BYTES
from ctxhealth.wire.types import Ident

_ENCODER = msgspec.json.Encoder()
_encode = _ENCODER.encode


class _Frame(msgspec.Struct, tag="events", tag_field="type", gc=False):
    epoch: Ident
    events: Annotated[list[AgentEvent], Meta(max_length=BATCH_EVENTS)]


class Batch(NamedTuple):
    """An ``events`` frame whose every event is plain; ``bodies`` stand beside ``events``."""

    epoch: str
    events: Sequence[Event]
    bodies: list[bytes]


_DECODER = msgspec.json.Decoder(_Frame)
# What stands around the events and their commas, but for the epoch.
_AROUND = len(_encode(_Frame("", []))) - len(_encode(""))


def decode_batch(text: str) -> Batch | None:
    """The frame's events and bodies, or None where each must be looked at by itself."""
    # An escape may hide a NUL or a lone surrogate; one character is found faster than two.
    if "\\" in text and "\\u" in text:
        return None
    try:
        frame = _DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    events = frame.events
    for event in events:
        if type(event) not in SHRINKING:
            return None
    bodies = [_encode(event) for event in events]
    size = len(text) if text.isascii() else len(text.encode())
    if size != _AROUND + len(_encode(frame.epoch)) + sum(map(len, bodies)) + len(bodies) - 1:
        return None
    if size > EVENT_BYTES and max(map(len, bodies)) > EVENT_BYTES:
        return None
    return Batch(frame.epoch, events, bodies)
