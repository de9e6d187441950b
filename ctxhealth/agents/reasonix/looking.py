"""What Reasonix says of a session when asked: facts, the context report, what went by unseen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxhealth.agents.reasonix.session import Event, Session, gap

Json = Mapping[str, Any]


def facts_of(status: Json, context: Json, models: Json, sessions: Any) -> dict[str, Any]:
    """Title, model, provider and window of the session that is open."""
    provider, _, model = str(models.get("current") or "").rpartition("/")
    row: Json = next((entry for entry in _rows(sessions) if entry.get("current")), {})
    return {
        "title": row.get("title") or None,
        "model": model or str(status.get("label") or "") or None,
        "provider": provider or None,
        "window": _positive(context.get("window")),
    }


def introduced(session: Session, facts: Mapping[str, Any]) -> list[Event]:
    """``chat.opened`` the first time, ``chat.updated`` with what changed since."""
    known, before = {k: v for k, v in facts.items() if v is not None}, session.facts
    session.facts = {**(before or {}), **known}
    if before is None:
        return [{"type": "chat.opened", **known, "labels": {"product": "Reasonix"}}]
    changed = {key: value for key, value in known.items() if before.get(key) != value}
    return [{"type": "chat.updated", **changed}] if changed else []


def reported(context: Json) -> list[Event]:
    """The context report: Reasonix's own count, beside which a provider's reading stands."""
    used = _positive(context.get("used"))
    if used is None:
        return []
    return [{"type": "usage.update", "used": used, "size": _positive(context.get("window"))}]


def caught_up(session: Session, status: Json, page: Json | None) -> list[Event]:
    """Bring ``session`` to where ``status`` is: a gap for what went by, the messages after all.

    ``page``: the newest records of the transcript, None where this version offers none.
    """
    runtime: Json = status.get("runtimeState") or {}
    first, unseen = session.runtime is None, _unseen(session, runtime)
    # At the first look frames may be on their way already: they are no part of what was missed.
    session.seq = None if first else _whole(runtime.get("turnEventSeq"))
    session.runtime = str(runtime.get("runtimeEpoch") or "")
    session.committed = _whole(runtime.get("committedEventSeq"))
    events: list[Event] = [gap(unseen)] if unseen else []
    if unseen and page is not None:
        events += mended(session, page)
    if first:
        _know(session, page or {})
    return [*events, *_standing(session, runtime)]


def mended(session: Session, page: Json) -> list[Event]:
    """The members of the history that went by unseen, as far as the page reaches back."""
    session.holes = False
    return [event for record in _new(session, page) for event in _member(session, record)]


def _unseen(session: Session, runtime: Json) -> int:
    """Frames, or entries of the session where the process is another one, since the last look."""
    if session.runtime is None:
        return 0
    if session.runtime == runtime.get("runtimeEpoch"):
        now, before = _whole(runtime.get("turnEventSeq")), session.seq
    else:
        now, before = _whole(runtime.get("committedEventSeq")), session.committed
    return max(0, (now or 0) - (before or 0))


def _standing(session: Session, runtime: Json) -> list[Event]:
    """Whether a turn runs now; one that ended unseen ends as Reasonix says it did."""
    turn = str(runtime.get("turnId") or "")
    if runtime.get("running") and turn:
        return session.start(turn)
    if session.turn is None:
        return []
    status = "completed" if session.wrote else "interrupted"
    if session.turn == turn:
        status = str(runtime.get("turnStatus") or status)
    if status == "completed" and not session.wrote:
        # Its answer was not seen, which does not mean that there was none.
        session.wrote = True
    over = session.calls.unseen()
    return [*over, *session.end(status, "it ended while nobody looked")]


def _new(session: Session, page: Json) -> list[Json]:
    """The records behind the last one that is known."""
    records = [record.get("message") or {} for record in _rows(page.get("records"))]
    after = 0
    for number, message in enumerate(records, start=1):
        if any(session.has_told(item) for item in _names(message)):
            after = number
    return records[after:]


def _know(session: Session, page: Json) -> None:
    """What stood there before the first look is not told, and never will be."""
    for record in _rows(page.get("records")):
        session.told += _names(record.get("message") or {})


def _names(message: Json) -> list[str]:
    calls = [f"{call.get('id')}.call" for call in _rows(message.get("toolCalls"))]
    if message.get("role") == "tool":
        return [f"{message.get('toolCallId')}.result"]
    return [str(message.get("messageId")), *calls] if message.get("messageId") else calls


def _member(session: Session, message: Json) -> list[Event]:
    role, text = message.get("role"), str(message.get("content") or "")
    events: list[Event] = []
    if role == "user":
        ended = session.end("completed" if session.wrote else "interrupted")
        events = [*ended, *session.start(str(message.get("turnId")))]
        events += session.add(str(message.get("messageId")), role="user", kind="text", text=text)
    elif role == "assistant":
        if text.strip():
            session.wrote = True
            events += session.add(
                str(message.get("messageId")), role="assistant", kind="text", text=text
            )
        for call in _rows(message.get("toolCalls")):
            arguments = str(call.get("arguments") or "")
            events += session.call_made(str(call.get("id")), call.get("name"), arguments)
    elif role == "tool":
        call_id = str(message.get("toolCallId"))
        events = session.call_answered(call_id, message.get("toolName"), text)
    at = _positive(message.get("createdAt"))
    return [{**event, "ts": at} if at else event for event in events]


def _rows(value: Any) -> list[Json]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _positive(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
