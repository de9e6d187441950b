"""The operator's commands, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxhealth.client import CommandContext, Failed, Refused

from . import fallback, host, latches, loops
from .books import Station, show, station

Act = Callable[[Station, CommandContext, Any, Any], "dict[str, Any] | None"]


def register(made: Station) -> None:
    """Every command that this agent can carry out; what is missing is said, not guessed."""
    lacking = host.missing()
    if lacking:
        made.reporter.note(
            f"unsupported: this Agent Zero has no {', '.join(lacking)}", "warning",
            code="unsupported",
        )  # fmt: skip
    for kind, (act, manual, needs_history) in _KINDS.items():
        if not (lacking and needs_history):
            made.reporter.on(kind, _bound(act), manual_start=manual)
    if not lacking:
        made.reporter.mark_engine(None)


def _bound(act: Act) -> Callable[[CommandContext], Any]:
    def run(command: CommandContext) -> Any:
        now = station()
        found = host.find(command.chat or "")
        if now is None or found is None:
            raise Refused("stale", f"there is no chat {command.chat} in this process")
        return act(now, command, *found)

    return run


def _continue(made: Station, command: CommandContext, context: Any, agent: Any) -> dict[str, Any]:
    """The user's message is in the history already: the agent is told to go on from there."""
    if host.is_running(context):
        raise Refused("busy", "a turn is running")
    nudge = getattr(context, "nudge", None)
    if nudge is None:
        raise Refused("unsupported", "this Agent Zero has no nudge; write a message in its chat")
    nudge()
    return {"reason": "told to go on"}


def _stop(made: Station, command: CommandContext, context: Any, agent: Any) -> dict[str, Any]:
    if not host.is_running(context):
        raise Failed("no turn is running")
    context.kill_process()
    return {"reason": "the running turn was ended"}


def _snapshot(made: Station, command: CommandContext, context: Any, agent: Any) -> dict[str, Any]:
    loops.run_on(host.TURNS, lambda: show(made.book(agent), agent))
    return {"detail": {"history": int(agent.history.get_tokens())}}


def _clear(made: Station, command: CommandContext, context: Any, agent: Any) -> dict[str, Any]:
    """``then: compact`` goes on with a fallback at once."""
    told = latches.clear(made, command, context, agent)
    if command.args.get("then") != "compact":
        return told
    return {**told, **fallback.compact(made, command, context, agent)}


#: kind -> (function, whether it says itself when it starts, whether it changes a history)
_KINDS: dict[str, tuple[Act, bool, bool]] = {
    "compact_fallback": (fallback.compact, True, True),
    "clear_latch": (_clear, False, False),
    "continue": (_continue, False, False),
    "stop_turn": (_stop, False, False),
    "rescue": (fallback.rescue, True, True),
    "repair_pairs": (fallback.repair, True, True),
    "restore_backup": (fallback.restore, True, True),
    "snapshot": (_snapshot, False, True),
}
