"""Which reader a file gets: told by its first rows."""

from __future__ import annotations

import json

import pytest

from ctxhealth.readers import registry
from tests.readers.session import Session

CLAUDE = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"content": "hi"}}


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (CLAUDE, "claude-code"),
        ({"type": "summary", "summary": "x", "leafUuid": "u"}, "claude-code"),
        ({"type": "queue-operation", "sessionId": "s"}, "claude-code"),
        ({"type": "session_meta", "payload": {"id": "x"}}, "codex"),
        ({"type": "session", "id": "x", "cwd": "/"}, "pi"),
        ({"session": {"id": "x"}}, "opencode"),
        ({"sessionId": "x", "projectHash": "y", "kind": "main"}, "gemini"),
        ({"hello": "world"}, None),
        ({"type": "user", "text": "hi"}, None),
    ],
)
def test_a_first_row_tells_the_format(row: dict[str, object], name: str | None) -> None:
    found = registry.sniff(json.dumps(row).encode() + b"\n")
    assert (found.name if found else None) == name


def test_damaged_lines_at_the_start_do_not_hide_the_format() -> None:
    session = Session()
    session.turn("m1", 20_000)
    head = b"\n\x00\x00\nrubbish\n" + session.bytes()
    found = registry.sniff(head)
    assert found is not None and found.name == "claude-code"


def test_a_first_line_longer_than_the_head_is_recognised_by_its_keys() -> None:
    row = {**CLAUDE, "message": {"content": "x" * 200_000}}
    found = registry.sniff(json.dumps(row).encode()[: registry.HEAD_BYTES])
    assert found is not None and found.name == "claude-code"


def test_every_format_that_can_be_read_is_named_in_the_sentence() -> None:
    names = [format.what for format in registry.FORMATS if format.make is not None]
    assert names and all(name in registry.readable() for name in names)
