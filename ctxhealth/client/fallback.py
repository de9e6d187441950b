"""The deterministic commands, carried out by ctxhealth.engine on the host's own history.

``reporter.use_engine(chat, get_history=..., set_history=..., backup_dir=...)`` is all a host adds.
The engine is imported when it is used, so a host that never does needs not ship it.
"""

# ruff: noqa: TID252  (relative, so that client and engine can be vendored side by side)
from __future__ import annotations

import contextlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .context import CommandContext, Failed, Refused
from .epochs import now_ms
from .histories import snapshot_of

if TYPE_CHECKING:
    from ..engine import History, Plan
    from .reporter import Reporter

_KINDS = ("compact_fallback", "repair_pairs", "restore_backup", "snapshot")


@dataclass(frozen=True)
class Keeper:
    """One host's history, or one per chat where ``per_chat``."""

    reporter: Reporter
    get: Callable[..., Any]
    put: Callable[..., Any]
    folder: Path
    per_chat: bool
    scope: str | None
    target: int | None
    count: Callable[[str], int] | None
    lock: AbstractContextManager[Any]

    def history(self, chat: str | None) -> History:
        """The host's history now, as the engine reads it (a History or its dictionary)."""
        from ..engine import History

        given = self.get(chat) if self.per_chat else self.get()
        return given if isinstance(given, History) else History.from_dict(given)

    def replace(self, chat: str | None, history: History) -> None:
        if self.per_chat:
            self.put(chat, history)
        else:
            self.put(history)

    def report(self, chat: str | None, history: History) -> None:
        if chat is not None:
            self.reporter.chat(chat).history_snapshot(history.revision, **snapshot_of(history))


def serve(
    reporter: Reporter,
    chat: str | None,
    *,
    get_history: Callable[..., Any],
    set_history: Callable[..., Any],
    backup_dir: str | os.PathLike[str],
    scope: str | None = None,
    target: int | None = None,
    count: Callable[[str], int] | None = None,
    lock: AbstractContextManager[Any] | None = None,
    safe_point: bool = True,
) -> None:
    """Register compact_fallback, repair_pairs, restore_backup and snapshot.

    ``chat`` given: ``get_history()`` and ``set_history(history)``. Without: for every chat, with
    its id as the first argument. ``lock`` is held from reading to writing. ``scope`` and
    ``target`` default to what the chat's window, reserve, trigger and history limit give.
    ``count`` is the agent's tokenizer. Handlers run in a thread of their own.
    """
    keeper = Keeper(
        reporter, get_history, set_history, Path(backup_dir), chat is None, scope, target, count,
        lock if lock is not None else contextlib.nullcontext(),
    )  # fmt: skip
    steps: dict[str, Callable[[Keeper, CommandContext], dict[str, Any]]] = {
        "compact_fallback": _compact,
        "repair_pairs": _repair,
        "restore_backup": _restore,
        "snapshot": _snapshot,
    }
    reporter.mark_engine(chat)
    for kind in _KINDS:
        reporter.on(kind, _bound(steps[kind], keeper), chat=chat, safe_point=safe_point)


def target_of(
    facts: Mapping[str, Any], history: History, scope: str | None
) -> tuple[int, str]:  # fmt: skip
    """(target, scope) from a chat's declared facts. Raises ValueError where none is known."""
    from ..engine import default_target

    window, trigger = facts.get("window"), facts.get("trigger") or {}
    tokens = trigger.get("tokens")
    if tokens is None and trigger.get("ratio") is not None and window is not None:
        tokens = math.floor(trigger["ratio"] * window)
    own: Any = trigger.get("scope") or "prompt"
    if scope is None:
        by_history = facts.get("history_limit") is not None or own == "history"
        scope = "history" if by_history or history.beside is None else "prompt"
    target = default_target(
        scope=scope,  # type: ignore[arg-type]
        budget=_budget(facts),
        trigger=tokens,
        trigger_scope=own,
        history_limit=facts.get("history_limit"),
        beside=history.beside,
    )
    return target, scope


def _budget(facts: Mapping[str, Any]) -> int | None:
    window: int | None = facts.get("window")
    most: int | None = facts.get("max_input")
    if window is None:
        return most
    reserve = facts.get("reserve")
    if reserve is None:
        reserve = min(4_096, max(1, window // 20))
    budget = max(0, window - reserve)
    return budget if most is None else min(budget, most)


def _bound(
    step: Callable[[Keeper, CommandContext], dict[str, Any]], keeper: Keeper
) -> Callable[[CommandContext], dict[str, Any]]:
    return lambda context: step(keeper, context)


def _compact(keeper: Keeper, context: CommandContext) -> dict[str, Any]:
    from ..engine import KeepRules, fall_back

    chat = keeper.reporter.chat(context.chat or "")
    with keeper.lock:
        history = keeper.history(context.chat)
        target, scope = _target(keeper, context, chat.facts, history)
        rules = KeepRules(turns=max(1, int(context.args.get("keep_turns") or 1)))
        begun = time.monotonic()
        attempt = chat.compaction_started(
            context.id, "forced", before=history.total(scope), scope=scope,  # type: ignore[arg-type]
            input_hash=history.revision,
        )  # fmt: skip
        saved: list[str] = []
        try:
            after, plan = fall_back(
                history, target=target, scope=scope, rules=rules, count=keeper.count,  # type: ignore[arg-type]
                save=lambda document: saved.append(_save(keeper, context, document)),
                command_id=context.id, at_ms=now_ms(),
            )  # fmt: skip
            if plan.steps:
                keeper.replace(context.chat, after)
        except BaseException as error:
            chat.compaction_finished(
                attempt, "failed", scope=scope, trigger="forced", reason=str(error)
            )
            raise
    _report(chat, attempt, plan, saved, begun)
    keeper.report(context.chat, after)
    if not plan.steps:
        raise Failed(plan.sentence)
    return {
        "before": plan.before,
        "after": plan.after,
        "backup": saved[0] if saved else None,
        "reason": plan.sentence,
        "detail": {"target": plan.target, "scope": plan.scope, "outcome": plan.outcome},
    }


def _target(
    keeper: Keeper, context: CommandContext, facts: Mapping[str, Any], history: History
) -> tuple[int, str]:
    asked = context.args.get("target", keeper.target)
    try:
        target, scope = target_of(facts, history, keeper.scope)
    except ValueError as error:
        if asked is None:
            raise Refused("unsupported", f"{error}; give a target") from error
        target, scope = 0, keeper.scope or "history"
    return (target if asked is None else int(asked)), scope


def _report(chat: Any, attempt: str, plan: Plan, saved: list[str], begun: float) -> None:
    chat.compaction_finished(
        attempt,
        plan.outcome,
        before=plan.before,
        after=plan.after,
        scope=plan.scope,
        reason=plan.sentence,
        steps=[
            {"step": step.step, "before": step.before, "after": step.after, "calls": 0}
            for step in plan.steps
        ],
        removed=list(plan.folded) or None,
        input_hash=plan.revision,
        revision=plan.result.revision,
        lossy=plan.lossy,
        backup=saved[0] if saved else None,
        trigger="forced",
        ms=int((time.monotonic() - begun) * 1000),
    )


def _repair(keeper: Keeper, context: CommandContext) -> dict[str, Any]:
    from ..engine import repair_pairs

    with keeper.lock:
        history = keeper.history(context.chat)
        repaired, repair = repair_pairs(history, count=keeper.count)
        backup = None
        if repair.changed:
            backup = _backup(keeper, context, history)
            keeper.replace(context.chat, repaired)
    keeper.report(context.chat, repaired)
    return {
        "before": history.total(),
        "after": repaired.total(),
        "backup": backup,
        "reason": None if repair.changed else "no broken pair was found",
        "detail": repair.to_dict(),
    }


def _restore(keeper: Keeper, context: CommandContext) -> dict[str, Any]:
    from ..engine import history_from_backup

    path = _path(keeper, context.chat, str(context.args.get("command") or ""))
    try:
        restored = history_from_backup(json.loads(path.read_text("utf-8")))
    except FileNotFoundError as error:
        raise Failed(f"no backup of command {context.args.get('command')}") from error
    except ValueError as error:
        raise Failed(f"the backup cannot be read: {error}") from error
    with keeper.lock:
        history = keeper.history(context.chat)
        backup = _backup(keeper, context, history)
        keeper.replace(context.chat, restored)
    keeper.report(context.chat, restored)
    return {"before": history.total(), "after": restored.total(), "backup": backup}


def _snapshot(keeper: Keeper, context: CommandContext) -> dict[str, Any]:
    with keeper.lock:
        history = keeper.history(context.chat)
    keeper.report(context.chat, history)
    return {"detail": {"revision": history.revision}}


def _backup(keeper: Keeper, context: CommandContext, history: History) -> str:
    from ..engine import backup_document

    return _save(keeper, context, backup_document(history, context.id, now_ms()))


def _save(keeper: Keeper, context: CommandContext, document: Mapping[str, Any]) -> str:
    """On the disk for good before anything is changed: written aside, synced, then named."""
    path = _path(keeper, context.chat, context.id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    with open(os.open(aside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)
    return str(path)


def _path(keeper: Keeper, chat: str | None, command: str) -> Path:
    return keeper.folder / _name(chat or "agent") / f"{_name(command)}.json"


def _name(id: str) -> str:
    """A file name that no id can make point elsewhere, and that keeps two ids apart."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", id)[:60]
    if plain == id:
        return plain
    return f"{plain}-{blake2b(id.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
