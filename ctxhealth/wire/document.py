"""docs/protocol.md, written from the Structs that decode the protocol.

    python -m ctxhealth.wire.document > docs/protocol.md

A test fails when the file is not what this prints.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import inspect as shapes

from ctxhealth.wire import contract, frames, limits, parts
from ctxhealth.wire.events import AGENT_EVENTS, SERVER_EVENTS, Envelope

FROM_AGENT: tuple[type[frames.Frame], ...] = (
    frames.Hello,
    frames.Events,
    frames.Heartbeat,
    frames.Bye,
)
FROM_SERVER: tuple[type[frames.Frame], ...] = (
    frames.Welcome,
    frames.Ack,
    frames.Resend,
    frames.Busy,
    frames.Heartbeat,
    frames.Command,
    frames.Cancel,
)
VALUES: tuple[type[msgspec.Struct], ...] = (
    frames.Capabilities, frames.Limits, frames.Rejected, frames.Expected, parts.Trigger,
    parts.Utility, parts.Usage, parts.UsageIteration, parts.Content, parts.SnapshotBulk,
    parts.SnapshotTopic, parts.SnapshotCurrent, parts.SnapshotItem, parts.StepResult,
    parts.Summarizer, parts.AddedItem, parts.Release, parts.Holder,
)  # fmt: skip
_LIMITS = (
    ("bytes of a frame", limits.FRAME_BYTES),
    ("bytes of an event", limits.EVENT_BYTES),
    ("events in a frame", limits.BATCH_EVENTS),
    ("events in flight, not yet acked", limits.INFLIGHT_EVENTS),
    ("depth of nesting in an event", limits.JSON_DEPTH),
    ("bytes of hello", limits.HELLO_BYTES),
    ("seconds until hello", limits.HELLO_SECONDS),
    ("seconds between heartbeats", limits.HEARTBEAT_SECONDS),
    ("seconds of silence until late", limits.LATE_SECONDS),
    ("seconds of silence until offline", limits.OFFLINE_SECONDS),
    ("events a second", limits.RATE_EVENTS_PER_SECOND),
    ("fruitless resends in a minute", limits.RESENDS_PER_MINUTE),
    ("ms of clock skew until it is a finding", limits.SKEW_MS),
    ("ms until a command must be received", limits.DELIVER_MS),
    ("ms until a ping must be received", limits.PING_DELIVER_MS),
    ("seconds of a command's lease", limits.LEASE_SECONDS),
)


def document() -> str:
    """The whole page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from (f"# The agent protocol, version {limits.PROTOCOL}", "", contract.INTRODUCTION, "")
    yield from ("## What is promised", "")
    for number, line in enumerate(contract.LINES, 1):
        yield f"{number}. {line}"
    yield from ("", "## Frames of the agent", "")
    yield from _structs(FROM_AGENT)
    yield from ("## Frames of the server", "")
    yield from _structs(FROM_SERVER)
    yield from ("## Events", "", "Every event has these fields:", "")
    yield from _fields(Envelope, ())
    yield ""
    yield from _structs(AGENT_EVENTS, _names(Envelope))
    yield from ("## The server's own events", "", "In a chat's log, never sent by agents.", "")
    yield from _structs(SERVER_EVENTS, _names(Envelope))
    yield from ("## Values in frames and events", "")
    yield from _structs(VALUES)
    yield from ("## Limits", "", "| what | at most |", "|---|---|")
    yield from (f"| {what} | {value:,} |" for what, value in _LIMITS)
    yield from ("", "## Close codes", "", "| code | means |", "|---|---|")
    yield from (f"| {code} | {text} |" for code, text in contract.CLOSE_CODES)
    yield from ("", "## Over HTTP", "", contract.HTTP)


def _structs(
    structs: Iterable[type[msgspec.Struct]], without: tuple[str, ...] = ()
) -> Iterator[str]:
    for struct in structs:
        tag = struct.__struct_config__.tag
        yield from (f"### `{tag or struct.__name__}`", "")
        # Inherited docstrings belong to the base.
        said = struct.__dict__.get("__doc__")
        if said:
            yield from (inspect.cleandoc(said), "")
        rows = list(_fields(struct, without))
        if len(rows) > 2:
            yield from (*rows, "")


def _names(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(struct))


def _fields(struct: type[msgspec.Struct], without: tuple[str, ...]) -> Iterator[str]:
    yield from ("| field | type | |", "|---|---|---|")
    known = shapes.type_info(struct)
    assert isinstance(known, shapes.StructType)
    for field in known.fields:
        if field.encode_name not in without:
            needed = "required" if field.required else ""
            yield f"| `{field.encode_name}` | {_type(field.type)} | {needed} |"


def _type(info: Any) -> str:
    """A type in words: ``integer from 0``, ``text of 1 to 200``, ``list of ...``."""
    if isinstance(info, shapes.UnionType):
        named = [_type(one) for one in info.types if not isinstance(one, shapes.NoneType)]
        return " or ".join(named)
    if isinstance(info, shapes.LiteralType):
        return ", ".join(f"`{value}`" for value in info.values)
    if isinstance(info, shapes.ListType):
        most = f", at most {info.max_length}" if info.max_length is not None else ""
        return f"list of {_type(info.item_type)}{most}"
    if isinstance(info, shapes.DictType):
        return f"object of {_type(info.value_type)}"
    if isinstance(info, shapes.StructType):
        return f"[{info.cls.__name__}](#{info.cls.__name__.lower()})"
    return _scalar(info)


def _scalar(info: Any) -> str:
    if isinstance(info, shapes.IntType):
        low = "" if info.ge is None else f" from {info.ge}"
        high = "" if info.le is None or info.le > 2**50 else f" to {info.le}"
        return f"integer{low}{high}"
    if isinstance(info, shapes.FloatType):
        low = "" if info.ge is None else f" from {info.ge:g}"
        return f"number{low}" + ("" if info.le is None else f" to {info.le:g}")
    if isinstance(info, shapes.StrType):
        if info.pattern:
            return f"text like `{info.pattern.strip('^$').replace('|', ' or ')}`"
        low = "1 to " if info.min_length else "at most "
        return "text" if info.max_length is None else f"text, {low}{info.max_length} characters"
    if isinstance(info, shapes.BoolType):
        return "true or false"
    return "any JSON" if isinstance(info, shapes.AnyType) else "event"


if __name__ == "__main__":
    sys.stdout.write(document())
