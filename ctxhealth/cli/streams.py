"""A stream of wire events in a file: one JSON object a line, as agents send them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxhealth.cli.errors import CannotSend
from ctxhealth.client.bodies import body
from ctxhealth.client.texts import TextPolicy
from ctxhealth.readers.base import Reader
from ctxhealth.readers.registry import HEAD_BYTES, sniff

Line = dict[str, Any]
_TEXTS = TextPolicy("excerpt", None)


def read_any(path: Path) -> Iterator[Line]:
    """The events of a stream, or those that a session file becomes. Raises CannotSend."""
    try:
        with open(path, "rb") as file:
            found = sniff(file.read(HEAD_BYTES))
    except OSError as error:
        raise CannotSend(f"{path} cannot be read: {error.strerror}.") from error
    if found is None:
        return read_stream(path)
    if found.make is None:
        raise CannotSend(f"{path} is {found.what}, which cannot be read yet.")
    return _session(path, found.make(path.stem))


def _session(path: Path, reader: Reader) -> Iterator[Line]:
    """A session's events; nobody can be told anything there, so its chats are read-only."""
    seen: set[str] = set()
    for event in _told(path, reader):
        chat = event.get("chat")
        if isinstance(chat, str) and chat not in seen:
            seen.add(chat)
            first = {"type": "server.connected", "ts": event["ts"], "chat": chat}
            yield {**first, "read_only": True}
        yield _as_sent(event)


def _told(path: Path, reader: Reader) -> Iterator[Line]:
    with open(path, "rb") as file:
        for raw in file:
            yield from reader.feed(raw.rstrip(b"\n"))
    yield from reader.finish()


def _as_sent(event: Line) -> Line:
    """As the SDK sends it: excerpts cut, text redacted."""
    fields = {key: value for key, value in event.items() if key not in ("type", "ts", "chat")}
    sent = body(event["type"], event["ts"], event.get("chat"), fields, _TEXTS)
    line: Line = json.loads(sent)
    return line


def read_stream(path: Path) -> Iterator[Line]:
    """Every event of the file. Raises CannotSend with the line where it is none."""
    try:
        with open(path, "rb") as file:
            for number, raw in enumerate(file, start=1):
                if raw.strip():
                    yield _event(path, number, raw)
    except OSError as error:
        raise CannotSend(f"{path} cannot be read: {error.strerror}.") from error


def _event(path: Path, number: int, raw: bytes) -> Line:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CannotSend(f"{path}, line {number}: not JSON ({error}).") from error
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise CannotSend(f"{path}, line {number}: an event is an object with a type.")
    if not isinstance(value.get("ts"), int):
        raise CannotSend(f"{path}, line {number}: an event has a ts in milliseconds.")
    return value
