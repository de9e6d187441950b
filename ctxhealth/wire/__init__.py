"""What travels between an agent and the server: events, frames, limits and the decoder.

The Structs here are the one definition. ``docs/protocol.md`` and the JSON Schema are generated
from them; everything else (fold, store, pages) reads these types and never raw dictionaries.
"""

from __future__ import annotations

from ctxhealth.wire.batch import Batch, decode_batch
from ctxhealth.wire.decode import Decoded, Reject, decode_event, decode_stored
from ctxhealth.wire.events import EVENT_TYPES, Event, ServerEvent, UnknownEvent
from ctxhealth.wire.salvage import salvage

__all__ = [
    "EVENT_TYPES",
    "Batch",
    "Decoded",
    "Event",
    "Reject",
    "ServerEvent",
    "UnknownEvent",
    "decode_batch",
    "decode_event",
    "decode_stored",
    "salvage",
]
