"""The protocol's JSON Schema, from the Structs that decode it."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxhealth.wire.events import AgentEvent
from ctxhealth.wire.frames import AgentFrame, ServerFrame
from ctxhealth.wire.limits import PROTOCOL

REF = "#/$defs/{name}"


def protocol_schema() -> dict[str, Any]:
    """``agent_frame``, ``server_frame`` and ``event`` are each one of the definitions' unions."""
    named = {"agent_frame": AgentFrame, "server_frame": ServerFrame, "event": AgentEvent}
    schemas, definitions = msgspec.json.schema_components(tuple(named.values()), ref_template=REF)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ctxhealth protocol {PROTOCOL}",
        "$defs": {**definitions, **dict(zip(named, schemas, strict=True))},
    }
