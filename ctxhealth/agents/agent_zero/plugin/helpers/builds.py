"""Prompt builds: how large each prompt is, and whether the wait before it made room.

Before each prompt the agent looks whether its history is above the limit and compresses until it
is not, or until it gives up (the newer line) or for ever (the older one).
"""

from __future__ import annotations

from typing import Any

from . import host
from .books import Book, Build, Station
from .facts import whole

_STALLED = "compression stalled"


def prompt_begun(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    if agent is not None and host.is_reported(agent.context):
        station.book(agent).build = Build()


def before_wait(station: Station, agent: Any) -> None:
    """Right before the agent looks whether its history is over the limit, and waits if so."""
    book = station.known(agent)
    if book is None or book.build is None:
        return
    limit, task = host.limit_of(agent.history), agent.data.get(host.TASK)
    book.build.before = int(agent.history.get_tokens())
    book.build.over = limit is not None and book.build.before > limit
    book.build.task_ended = bool(task is not None and task.is_ready())
    book.build.rows = len(agent.context.log.logs)


def wait_ended(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """Right behind it, where it did not raise. Still over: the oversize prompt will be sent."""
    book = station.known(agent) if agent is not None else None
    if book is None or book.build is None or not book.build.over:
        return
    build, after = book.build, int(agent.history.get_tokens())
    limit = host.limit_of(agent.history)
    if limit is None or after <= limit:
        return
    said = [row for row in agent.context.log.logs[build.rows :] if _is_stall(row)]
    if said:
        book.chat.note(str(said[-1].content)[:400], "warning", code="stalled")
    raced = said and build.task_ended and not build.passes and book.gained
    if raced and build.before is not None:
        _tell_race(book, build.before, after)


def _tell_race(book: Book, before: int, after: int) -> None:
    """A background pass that had ended with a gain was compared with itself: "no progress"."""
    attempt = book.chat.compaction_started(
        trigger="proactive", before=before, scope="history", phase="pre_turn"
    )
    book.chat.compaction_finished(
        attempt, "stalled", before=before, after=after, scope="history",
        reason="stalled race: a background pass that had ended with a gain was compared with "
        "itself, and nothing more was tried",
        summarizer={"calls": 0},
    )  # fmt: skip


def prompt_ended(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """The prompt is built and counted; where that failed its old count means nothing."""
    data = kwargs["data"]
    book = station.known(agent) if agent is not None else None
    if book is None or isinstance(data.get("exception"), BaseException):
        return
    book.settle()
    prompt = host.prompt_of(agent)
    if prompt is None:
        return
    book.beside = max(0, prompt - int(agent.history.get_tokens()))
    text = _system_text(agent, data)
    if text and text != book.system_text:
        book.system_text, book.system = text, host.count(text)
        tools = None if host.has_responses() else 0
        book.chat.updated(system=book.system, tools=tools)
    facts = book.chat.facts
    if whole(facts.get("window")) is None:
        station.tell_facts(agent)


def _system_text(agent: Any, data: dict[str, Any]) -> str:
    loop_data = data["kwargs"].get("loop_data") or (data["args"][1:2] or (None,))[0]
    parts = getattr(loop_data, "system", None)
    return "\n\n".join(map(str, parts)) if isinstance(parts, list) else ""


def _is_stall(row: Any) -> bool:
    return _STALLED in str(getattr(row, "heading", "")).lower()
