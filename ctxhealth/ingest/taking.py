"""Frames of a connected agent on their way to the writer, and what holds them back.

Frames of events come by the thousand: nothing is awaited for them that need not be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import msgspec

from ctxhealth.ingest.counting import count_in
from ctxhealth.ingest.gate import Gate
from ctxhealth.ingest.link import Link
from ctxhealth.store.counted import uncounted
from ctxhealth.store.intake import Intake
from ctxhealth.wire import Batch, decode_batch, limits, salvage
from ctxhealth.wire.frames import AGENT_FRAME, Bye, Events, Heartbeat

ROOM_SECONDS = 5.0
# An agent that stays over its rate for so long ignores what it is told.
OVER_RATE_S = 10.0


class Refusal(Exception):
    """The connection ends with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


def take(gate: Gate, link: Link, text: str | None) -> Awaitable[None] | None:
    """Take one frame; what to await where it cannot be taken at once. Raises Refusal."""
    if text is None:
        raise Refusal(limits.CLOSE_BAD_FRAME, "frames are text")
    if len(text) > limits.FRAME_BYTES:
        raise Refusal(limits.CLOSE_TOO_BIG, f"a frame has at most {limits.FRAME_BYTES} bytes")
    frame = decode_batch(text) or frame_of(text)
    if isinstance(frame, (Batch, Events)):
        return _take_events(gate, link, frame)
    if isinstance(frame, Heartbeat):
        link.heartbeat(frame)
    elif isinstance(frame, Bye):
        link.closed_by = f"bye: {frame.reason or 'no reason given'}"
        link.out.close(1000, "bye")
    else:
        raise Refusal(limits.CLOSE_BAD_FRAME, "hello was already said")
    return None


def _take_events(gate: Gate, link: Link, frame: Batch | Events) -> Awaitable[None] | None:
    if frame.epoch != link.stream.epoch:
        raise Refusal(limits.CLOSE_BAD_FRAME, "epoch: another one than hello named")
    wait = link.bucket.take(len(frame.events), link.heard)
    if wait:
        return _take_slowly(gate, link, frame, wait)
    link.over_since = None
    return _submit(gate, link, frame)


async def _take_slowly(gate: Gate, link: Link, frame: Batch | Events, wait: float) -> None:
    await _slow_down(link, wait)
    more = _submit(gate, link, frame)
    if more is not None:
        await more


def _submit(gate: Gate, link: Link, frame: Batch | Events) -> Awaitable[None] | None:
    intakes = link.take(frame)
    if not intakes:
        return None
    if link.over_credit(len(intakes)):
        link.out.busy(1_000, "more in flight than welcome allows")
        raise Refusal(limits.CLOSE_OVERLOAD, "more than twice the allowed events in flight")
    places = uncounted(intakes, link.models)
    if places:
        return _submit_counted(gate, link, intakes, places)
    if not gate.writer.has_room:
        return _submit_when_room(gate, link, intakes)
    gate.submit_soon(link, intakes)
    return None


async def _submit_counted(gate: Gate, link: Link, intakes: list[Intake], places: list[int]) -> None:
    generation = link.generation
    await count_in(gate, link, intakes, places)
    # Behind a gap that was told meanwhile everything comes again.
    if generation == link.generation:
        await _submit_when_room(gate, link, intakes)


async def _submit_when_room(gate: Gate, link: Link, intakes: list[Intake]) -> None:
    if await _room(gate):
        gate.submit_soon(link, intakes)
    else:
        # Not reading on is the back-pressure, but pings must be answered in their time.
        gate.starve(link, intakes[0].seq)


async def _room(gate: Gate) -> bool:
    until = time.monotonic() + ROOM_SECONDS
    while not gate.writer.has_room:
        left = until - time.monotonic()
        if left <= 0 or not await gate.hub.room(left):
            return gate.writer.has_room
    return True


async def _slow_down(link: Link, wait: float) -> None:
    """Slow an agent down that sends faster than welcome allows; end one that does not listen."""
    if link.over_since is None:
        link.over_since = link.heard
        link.out.busy(int(wait * 1_000) + 1, "over the rate that welcome allows")
    elif link.heard - link.over_since > OVER_RATE_S:
        raise Refusal(limits.CLOSE_RATE, f"over {link.bucket.rate:g} events a second for too long")
    await asyncio.sleep(min(wait, 1.0))


def frame_of(text: str) -> Any:
    """Any frame of an agent. Raises Refusal where it is none.

    One bad value must not cost a frame's other events, nor be sent again for ever.
    """
    try:
        return AGENT_FRAME.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        frame = salvage(text)
        if frame is None:
            raise Refusal(limits.CLOSE_BAD_FRAME, f"bad frame: {str(error)[:90]}") from None
        return frame
