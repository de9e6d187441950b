"""A demo agent's loop: turns on its own thread, an operator's commands between its steps."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ctxhealth.client import CommandContext, Failed, Refused, Reporter
from ctxhealth.demo.body import Body
from ctxhealth.demo.provider import Refused as ProviderRefused
from ctxhealth.engine import History, apply_plan, default_target, plan_fallback

Action = Callable[[], None]


class Loop:
    """Base of the demo agents. ``live`` is the scenario; subclasses add what their kind can do.

    ``mutex`` is held while a step runs, so a command that takes it acts at a safe point.
    """

    kinds: tuple[str, ...] = (
        "compact_fallback", "clear_latch", "continue", "restore_backup", "snapshot",
    )  # fmt: skip

    def __init__(self, reporter: Reporter, body: Body, backups: Path, pace: float) -> None:
        self.reporter, self.body = reporter, body
        self.backups, self.pace = backups, pace
        self.mutex = threading.Lock()
        self.over = threading.Event()
        self._wake = threading.Event()
        self._wanted: list[Action] = []
        for kind in self.kinds:
            reporter.on(kind, chat=body.spec.id, manual_start=True)(self._handler(kind))

    # the scenario --------------------------------------------------------------------------

    def live(self) -> None:
        raise NotImplementedError

    def run(self) -> None:
        """Live the scenario, serve the operator, and go on with small turns once it works again."""
        self.live()
        questions = 0
        while not self.over.is_set():
            self.rest(25)
            if self.body.turn is None and self.body.outcome == "answered":
                questions += 1
                said = f"Thank you. Next, please check item {questions} of the list."
                self.carefully(partial(self.turn, said))

    def rest(self, seconds: float) -> bool:
        """Wait at a safe point; do what an operator asked meanwhile. True if anything was."""
        if not self._wanted:
            self._wake.wait(seconds * self.pace)
        self._wake.clear()
        wanted, self._wanted = self._wanted, []
        for action in wanted:
            self.carefully(action)
        return bool(wanted)

    def carefully(self, action: Action) -> None:
        """Do it; a refusal of the provider ends the turn with its error, not the agent."""
        try:
            action()
        except ProviderRefused as refused:
            with self.step():
                self.body.end("error", error=refused.detail)

    @contextmanager
    def step(self) -> Iterator[None]:
        with self.mutex:
            yield

    def want(self, action: Action) -> None:
        """Have ``action`` run on the loop's own thread at its next rest."""
        self._wanted.append(action)
        self._wake.set()

    # commands ------------------------------------------------------------------------------

    def _handler(self, kind: str) -> Callable[[CommandContext], dict[str, Any]]:
        act = getattr(self, f"do_{kind}")

        def handle(context: CommandContext) -> dict[str, Any]:
            context.wait_until(
                lambda: self.mutex.acquire(blocking=False), "the running step of the turn"
            )
            try:
                context.start()
                result: dict[str, Any] = act(context)
                return result
            finally:
                self.mutex.release()

        return handle

    def do_compact_fallback(self, context: CommandContext) -> dict[str, Any]:
        """The engine on this chat's real history: backup, plan, apply, report."""
        before = self.body.history
        scope, target = self.goal(context.args.get("target"))
        plan = plan_fallback(before, target=target, scope=scope, count=self.body.count)
        attempt = self.body.new_id("attempt")
        self.body.chat.compaction_started(
            attempt, "forced", scope=scope, before=plan.before, revision=plan.revision[:16]
        )
        backup = self.save(before, context.id) if plan.steps else None
        after = apply_plan(before, plan)
        self.body.replace_history(after)
        self.body.chat.compaction_finished(
            attempt,
            plan.outcome,
            trigger="forced",
            scope=scope,
            before=plan.before,
            after=plan.after,
            reason=plan.sentence,
            steps=[
                {"step": step.step, "before": step.before, "after": step.after, "calls": 0}
                for step in plan.steps
            ],
            lossy=plan.lossy,
            backup=backup,
            revision=after.revision[:16],
        )
        self.body.snapshot()
        if not plan.steps:
            raise Failed(plan.sentence)
        return {"before": plan.before, "after": plan.after, "backup": backup}

    def goal(self, target: Any) -> tuple[Any, int]:
        """Scope and target of a fallback: 0.8 x the smallest limit this agent knows."""
        spec = self.body.spec
        scope: Any = "history" if spec.history_limit else "prompt"
        if isinstance(target, int):
            return scope, target
        reserve = min(4096, spec.window // 20)
        trigger = spec.trigger or {}
        tokens = trigger.get("tokens") or int(trigger.get("ratio", 0.8) * spec.window)
        found = default_target(
            scope=scope,
            budget=spec.window - reserve,
            trigger=tokens,
            trigger_scope=trigger.get("scope", "prompt"),
            history_limit=spec.history_limit,
            beside=self.body.history.beside,
        )
        return scope, found

    def do_clear_latch(self, context: CommandContext) -> dict[str, Any]:
        raise Refused("stale", "No latch is set in this agent, so there is nothing to clear.")

    def do_continue(self, context: CommandContext) -> dict[str, Any]:
        self.want(self.go_on)
        return {"detail": "The unanswered message is sent again."}

    def do_snapshot(self, context: CommandContext) -> dict[str, Any]:
        self.body.snapshot()
        return {}

    def do_restore_backup(self, context: CommandContext) -> dict[str, Any]:
        """Put back the history saved before a command."""
        path = self._backup(str(context.args.get("command", "")))
        if not path.is_file():
            raise Refused("stale", f"No backup of command {context.args.get('command')} is here.")
        before = self.body.size
        self.body.replace_history(History.from_dict(json.loads(path.read_text("utf-8"))))
        self.body.snapshot()
        return {"before": before, "after": self.body.size}

    # help for scenarios --------------------------------------------------------------------

    def turn(self, text: str) -> None:
        """One user turn, on the loop's thread."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Continue the unanswered turn, on the loop's thread."""
        raise NotImplementedError

    def answered(self, text: str) -> None:
        self.body.add("assistant", "text", text)
        self.body.end("answered")

    def save(self, history: History, command: str) -> str:
        self.backups.mkdir(parents=True, exist_ok=True)
        path = self._backup(command)
        path.write_text(json.dumps(history.to_dict()), encoding="utf-8")
        return str(path)

    def _backup(self, command: str) -> Path:
        safe = "".join(char for char in command if char.isalnum() or char in "-_")
        return self.backups / f"{self.body.spec.id}-{safe}.json"
