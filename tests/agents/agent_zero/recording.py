"""Keeps what an agent reported of one chat as a stream that the default tests replay."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.agents.server import House

FOLDER = Path(__file__).with_name("streams")
_VARIABLE = "CTXHEALTH_STREAMS"
_TEXT = 120


def record(house: House, chat: str, name: str) -> None:
    """Write the chat's own events, where a folder for them is named; the server's are left out."""
    folder = os.environ.get(_VARIABLE)
    if not folder:
        return
    events = [scrubbed(e) for e in house.events(chat) if not e["type"].startswith("server.")]
    lines = [json.dumps(event, separators=(",", ":"), sort_keys=True) for event in events]
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def scrubbed(event: dict[str, Any]) -> dict[str, Any]:
    """Without what only the machine knew: paths, long texts."""
    kept = {key: value for key, value in event.items() if value is not None and key != "chat_seq"}
    # An error's text is read for what it states; of a message only a beginning is needed.
    return {key: value if key == "detail" else _short(value) for key, value in kept.items()}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        text = value if len(value) <= _TEXT else value[:_TEXT]
        return "(a path)" if "/" in text and text.startswith("/") else text
    if isinstance(value, list):
        return [_short(part) for part in value]
    if isinstance(value, dict):
        return {key: _short(part) for key, part in value.items()}
    return value
