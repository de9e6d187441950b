"""Small synthetic streams of events, as an agent would send them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ctxhealth.store.intake import Intake, intake_of
from ctxhealth.wire import decode_event

START = 1_790_000_000_000


def event(seq: int, type_: str, chat: str | None = "c1", **fields: Any) -> dict[str, Any]:
    """One event on the wire; ``ts`` grows with ``seq`` unless given."""
    body = {"seq": seq, "type": type_, "ts": START + seq * 1_000, "chat": chat, **fields}
    return {key: value for key, value in body.items() if value is not None}


def opened(seq: int, chat: str = "c1", **fields: Any) -> dict[str, Any]:
    facts = {"title": f"About {chat}", "model": "test-model", "window": 200_000, **fields}
    return event(seq, "chat.opened", chat, **facts)


def message(seq: int, chat: str = "c1", tokens: int = 100, **fields: Any) -> dict[str, Any]:
    given = {"id": f"m{seq}", "role": "user", "kind": "text", "tokens": tokens, **fields}
    return event(seq, "message.added", chat, **given)


def exchange(seq: int, load: int, chat: str = "c1") -> list[dict[str, Any]]:
    """A request and its reply: the reply's usage is the load."""
    return [
        event(seq, "request.sent", chat, request=f"r{seq}", local=load),
        event(
            seq + 1,
            "model.replied",
            chat,
            request=f"r{seq}",
            usage={"dialect": "openai", "input": load, "output": 50},
            content={"text_chars": 200},
        ),
    ]


def session(chats: int = 1, messages: int = 20) -> list[dict[str, Any]]:
    """Chats side by side in one stream, each with messages and exchanges."""
    events: list[dict[str, Any]] = []
    names = [f"c{number}" for number in range(1, chats + 1)]
    for name in names:
        events.append(opened(len(events) + 1, name))
    for step in range(messages):
        for name in names:
            events.append(message(len(events) + 1, name))
            events.extend(exchange(len(events) + 1, 1_000 + step * 150, name))
    return events


def raw(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode()


def intakes(events: Iterable[dict[str, Any]]) -> list[Intake]:
    return [intake_of(decode_event(raw(event))) for event in events]
