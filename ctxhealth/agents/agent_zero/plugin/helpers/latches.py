"""What keeps an Agent Zero chat from going on, item by item, and clearing it.

The agent has no object that says "do not compress". What remains between turns is a failed pass
that the next prompt build awaits, counters, and a pause; beside them two things that are merely
old after a history was changed. Nothing of it outlives its cause for long: while the utility model
is dead, clearing alone changes nothing, and the receipt says so.
"""

from __future__ import annotations

from typing import Any

from ctxhealth.client import CommandContext, Failed

from . import host, loops
from .books import Book, Station

#: What of the provider's own memory would survive a change of the history.
HELD = ("response_id", "previous_response_id")


def end_background(book: Book, agent: Any, command: str) -> None:
    """No background pass any more, and no failed one that the next prompt build would await."""
    loops.end_background(agent)
    if book.latch is not None:
        book.chat.latch_cleared(book.latch, "operator", command)
        book.latch = None


def clear(station: Station, command: CommandContext, context: Any, agent: Any) -> dict[str, Any]:
    """Clear what is latched; the old value of each item is in the receipt."""
    book = station.book(agent)
    cleared, stale = loops.run_on(host.TURNS, lambda: _clear(context, agent))
    reported, book.latch = book.latch, None
    wanted = command.args.get("latch")
    if reported is not None:
        book.chat.latch_cleared(reported, "operator", command.id)
    detail = {"cleared": cleared, "refreshed": stale}
    if not cleared and reported is None:
        raise Failed("nothing was latched in this chat", detail)
    if reported is not None and wanted not in (None, reported):
        book.chat.latch_cleared(str(wanted), "operator", command.id)
    told = ", ".join(f"{name} (was {value})" for name, value in cleared.items()) or str(reported)
    return {"reason": f"cleared: {told}"[:400], "detail": detail}


def _clear(context: Any, agent: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what was latched, what was merely old), each with its old value. On the turns' loop."""
    cleared: dict[str, Any] = {}
    for name, take in _ITEMS.items():
        old = take(context, agent)
        if old is not None:
            cleared[name] = old
    return cleared, _refresh(agent)


def _pass(context: Any, agent: Any) -> str | None:
    """A pass that has ended; one that runs is left alone."""
    task = agent.data.get(host.TASK)
    if task is None or not task.is_ready():
        return None
    agent.data[host.TASK] = None
    failed = _error_of(task)
    return f"failed: {failed}" if failed else None


def _error_of(task: Any) -> str | None:
    try:
        task.result_sync(0)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:200]
    return None


def _unusable(context: Any, agent: Any) -> Any:
    params = getattr(getattr(agent, "loop_data", None), "params_persistent", None)
    state = params.pop(host.UNUSABLE, None) if isinstance(params, dict) else None
    count = state.get("count") if isinstance(state, dict) else state
    return count or None


def _retries(context: Any, agent: Any) -> Any:
    count = agent.data.get(host.RETRIES)
    if not count:
        return None
    agent.data[host.RETRIES] = 0
    return count


def _paused(context: Any, agent: Any) -> Any:
    if not getattr(context, "paused", False):
        return None
    context.paused = False
    return True


_ITEMS = {
    "failed compression pass": _pass,
    "unusable replies": _unusable,
    "critical retries": _retries,
    "paused": _paused,
}


def _refresh(agent: Any) -> dict[str, Any]:
    """The provider's memory of this chat, and a prompt count of an earlier build."""
    told: dict[str, Any] = {}
    state = agent.data.get(host.RESPONSES)
    for key in HELD:
        if isinstance(state, dict) and state.get(key) is not None:
            told[key] = state.pop(key)
    window = agent.data.pop(host.WINDOW, None)
    if isinstance(window, dict) and window.get("tokens") is not None:
        told["prompt count"] = window["tokens"]
    return told
