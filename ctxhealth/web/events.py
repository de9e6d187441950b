"""One event of the log in one line; the raw JSON stays one press away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ctxhealth.store.queries import EventRow
from ctxhealth.web.format import duration, number, plural, words

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventLine:
    """``tone`` is empty, warning or critical; ``kind`` marks gaps and tombstones in place."""

    row: EventRow
    gist: str
    kind: str
    tone: str


def line_of(row: EventRow) -> EventLine:
    if row.tombstone:
        gist = f"rejected ({row.code}): {row.path or 'event'}: {row.detail or ''}"
        return EventLine(row, gist, "tombstone", "warning")
    body = _body(row)
    kind = "gap" if row.type == "gap" else "server" if row.by_server else ""
    return EventLine(row, gist_of(row.type, body)[:400], kind, _tone(row.type, body))


def pretty(row: EventRow) -> str:
    """The stored body, indented."""
    return msgspec.json.format(row.body.encode(), indent=2).decode()


def _body(row: EventRow) -> Body:
    body = msgspec.json.decode(row.body)
    return body if isinstance(body, dict) else {}


_BAD = {"model.failed", "reply.empty", "agent.stopped", "guard.refused"}


def _tone(kind: str, body: Body) -> str:
    if kind in _BAD or (kind == "turn.ended" and body.get("outcome") in ("stopped", "error")):
        return "critical"
    return "warning" if kind in ("gap", "latch.set") else ""


def gist_of(kind: str, body: Body) -> str:
    writer = _WRITERS.get(kind)
    return writer(body) if writer else _named(body)


def _count(value: Any) -> str:
    return number(value) if isinstance(value, int | float) else "?"


def _join(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part)


def _named(body: Body) -> str:
    """Unknown types: their flat fields, in order."""
    skip = {"type", "seq", "ts", "chat"}
    flat = [f"{key} {value}" for key, value in body.items() if key not in skip
            and isinstance(value, str | int | float | bool)]  # fmt: skip
    return ", ".join(flat[:8])


def _message(body: Body) -> str:
    role, kind = str(body.get("role")), words(str(body.get("kind")))
    what = kind if role in kind.split() else f"{role} {kind}"
    return _join(what, body.get("name"), f"{_count(body.get('tokens'))} tokens",
                 body.get("excerpt"))  # fmt: skip


def _request(body: Body) -> str:
    local = body.get("local")
    return _join(
        f"{body.get('purpose', 'chat')} request {body.get('request')}",
        f"local count {_count(local)}" if local is not None else "",
        f"at most {_count(body['max_output'])} out" if "max_output" in body else "",
    )


def _reply(body: Body) -> str:
    usage = body.get("usage") or {}
    content = body.get("content") or {}
    cached = usage.get("cache_read")
    return _join(
        f"in {_count(usage.get('input'))}" + (f" + {_count(cached)} cached" if cached else ""),
        f"out {_count(usage.get('output'))}",
        f"finish {body['finish']}" if body.get("finish") else "",
        plural(content.get("tool_calls"), "tool call") if content.get("tool_calls") else "",
        duration(body["ms"]) if isinstance(body.get("ms"), int) else "",
        "synthetic" if body.get("synthetic") else "",
    )


def _failed(body: Body) -> str:
    return _join(
        f"{body.get('purpose', 'chat')} call: {body.get('error')}",
        f"status {body['status']}" if body.get("status") else "",
        f"stated window {_count(body['stated_window'])}" if body.get("stated_window") else "",
        body.get("detail"),
    )


def _started(body: Body) -> str:
    return _join(
        f"{body.get('trigger')}, attempt {body.get('attempt')}",
        f"before {_count(body.get('before'))} ({body.get('scope', 'prompt')})",
    )


def _finished(body: Body) -> str:
    summarizer = body.get("summarizer") or {}
    calls = summarizer.get("calls")
    return _join(
        f"reported {body.get('reported')}",
        f"{_count(body.get('before'))} → {_count(body.get('after'))}",
        plural(calls, "summarizer call") if calls is not None else "",
        summarizer.get("error"),
        body.get("reason"),
    )


def _latch(body: Body) -> str:
    return _join(f"{words(str(body.get('kind') or 'latch'))} for the {body.get('scope')}",
                 body.get("reason"))  # fmt: skip


def _snapshot(body: Body) -> str:
    return _join(
        plural(len(body.get("bulks") or []), "bulk"),
        plural(len(body.get("topics") or []), "topic"),
        f"current {_count((body.get('current') or {}).get('tokens'))}",
    )


def _command(body: Body) -> str:
    return _join(words(str(body.get("kind") or "")), body.get("state"), body.get("reason"),
                 f"by {body['by']}" if body.get("by") else "")  # fmt: skip


_WRITERS: dict[str, Callable[[Body], str]] = {
    "message.added": _message,
    "request.sent": _request,
    "model.replied": _reply,
    "model.failed": _failed,
    "compaction.started": _started,
    "compaction.finished": _finished,
    "latch.set": _latch,
    "latch.cleared": lambda body: f"by {words(str(body.get('how')))}",
    "history.snapshot": _snapshot,
    "turn.started": lambda body: f"{body.get('kind', 'user')} turn {body.get('turn')}",
    "turn.ended": lambda body: _join(body.get("outcome"), body.get("error")),
    "reply.empty": lambda body: f"{_count(body.get('n'))} in a row",
    "agent.stopped": lambda body: _join(body.get("reason")),
    "gap": lambda body: f"{plural(body.get('count'), 'event')} dropped: {body.get('reason')}",
    "note": lambda body: _join(body.get("level"), body.get("text")),
    "command.progress": _command,
    "server.command": _command,
    "server.disconnected": lambda body: _join(body.get("reason")),
    "server.tick": lambda _: "a deadline passed",
}
