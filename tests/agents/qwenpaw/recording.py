"""Recorded streams: what the plugin reported in a run of the real QwenPaw, made small and clean."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

STREAMS = Path(__file__).resolve().parent / "streams"
#: Set to write the streams of a run of test_real.py anew.
RECORD = "CTXHEALTH_RECORD"
_BASE_MS = 1_790_000_000_000
_LEFT_OUT = ("chat_seq", "excerpt", "title")


def record(name: str, events: list[dict[str, Any]]) -> None:
    """Write the agent's events of one chat; only where a recording is asked for."""
    if not os.environ.get(RECORD):
        return
    own = [event for event in events if not _by_server(event)]
    lines = [_clean(event, own[0]["ts"]) for event in own]
    for number, line in enumerate(lines, start=1):
        line["seq"] = number
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    STREAMS.mkdir(exist_ok=True)
    (STREAMS / f"{name}.jsonl").write_text(text, "utf-8")


def _by_server(event: dict[str, Any]) -> bool:
    return str(event["type"]).startswith("server.")


def _clean(event: dict[str, Any], first: int) -> dict[str, Any]:
    """Without texts and without the machine's paths; times from a base of their own."""
    kept = {key: value for key, value in event.items() if key not in _LEFT_OUT}
    kept["ts"] = _BASE_MS + event["ts"] - first
    kept["chat"] = "chat"
    for topic in kept.get("topics", ()):
        topic.pop("title", None)
    if kept["type"] == "message.added":
        kept.pop("text", None)
    if "backup" in kept:
        kept["backup"] = "backups/" + Path(str(kept["backup"])).name
    return kept
