"""A stream of wire events in a file: one JSON object a line, as agents send them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxhealth.cli.errors import CannotSend

Line = dict[str, Any]


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
