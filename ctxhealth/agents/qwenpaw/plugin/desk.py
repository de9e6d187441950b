"""The operator's commands, each carried out in QwenPaw's loop, in a running turn or in one of its
own. The handlers run in threads of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import idle, work
from .jobs import Job, Work
from .sdk import client
from .watch import Watch

if TYPE_CHECKING:
    from .integration import Integration

_WHILE_RUNNING = "a running model call"
_WHILE_TURN = "the running turn"


class Desk:
    """``workspaces()`` lists QwenPaw's agents; ``backups`` keeps what was before a change."""

    def __init__(
        self, home: Integration, workspaces: Callable[[], list[Any]], backups: Path
    ) -> None:  # fmt: skip
        self.home, self.workspaces, self.backups = home, workspaces, backups

    def open(self) -> None:
        """Offer what this version can do."""
        reporter = self.home.reporter
        for kind, handler in self._able().items():
            reporter.on(kind, handler, manual_start=True)

    def _able(self) -> dict[str, Callable[[Any], Any]]:
        binding = self.home.binding
        able: dict[str, Callable[[Any], Any]] = {"stop_turn": self.stop_turn}
        if None in (binding.hook, binding.phase, binding.result, binding.action, binding.request):
            return able
        able |= {
            "continue": self.go_on,
            "restore_backup": self.restore,
            "snapshot": self.snapshot,
            "repair_pairs": self.repair,
        }
        if binding.manager is not None:
            able |= {
                "compact_fallback": self.fall_back,
                "compact_summarize": self.summarize,
                "clear_latch": self.clear_latch,
                "rescue": self.rescue,
            }
        return able

    # -- commands

    def fall_back(self, context: Any) -> dict[str, Any]:
        watch = self._watch(context)
        return self._do(context, watch, work.fallback(self, watch, context), mid_turn=True)

    def summarize(self, context: Any) -> dict[str, Any]:
        watch = self._watch(context)
        return self._do(context, watch, work.summarize(self, watch, context), mid_turn=True)

    def clear_latch(self, context: Any) -> dict[str, Any]:
        watch = self._watch(context)
        return self._do(context, watch, work.clear(self, watch, context), mid_turn=True)

    def snapshot(self, context: Any) -> dict[str, Any]:
        watch = self._watch(context)
        return self._do(context, watch, work.snapshot(self, watch), mid_turn=True)

    def repair(self, context: Any) -> dict[str, Any]:
        watch = self._watch(context)
        return self._do(context, watch, work.repair(self, watch, context), mid_turn=False)

    def restore(self, context: Any) -> dict[str, Any]:
        watch = self._watch(context)
        return self._do(context, watch, work.restore(self, watch, context), mid_turn=False)

    def go_on(self, context: Any) -> dict[str, Any]:
        """Have the last message answered; the command ends when the model is being asked."""
        watch = self._watch(context)
        job = Job(context, work.unanswered, answers=True)
        job.work = lambda agent: work.go_on(job, agent)
        self._alone(context, watch, job)
        return job.result.result(timeout=0)

    def stop_turn(self, context: Any) -> dict[str, Any]:
        watch = self._watch(context)
        if watch.turn is None:
            raise client.Refused("stale", "no turn is running")
        context.start()
        self._stop(watch)
        return {"detail": "the turn was stopped"}

    def rescue(self, context: Any) -> dict[str, Any]:
        """Stop the turn, fall back, continue."""
        watch = self._watch(context)
        context.start()
        if watch.turn is not None:
            self._stop(watch)
            context.wait_until(lambda: watch.turn is None, _WHILE_TURN)
        result = self._do(context, watch, work.fallback(self, watch, context), mid_turn=False)
        job = Job(context, work.unanswered, answers=True)
        job.work = lambda agent: work.go_on(job, agent)
        self._alone(context, watch, job)
        return {**result, "detail": {"continued": True, **(result.get("detail") or {})}}

    # -- where

    def _watch(self, context: Any) -> Watch:
        watch = self.home.known(context.chat or "")
        if watch is None:
            raise client.Refused("unsupported", f"{context.chat} is no chat of this QwenPaw")
        return watch

    def _do(self, context: Any, watch: Watch, job: Work, mid_turn: bool) -> dict[str, Any]:
        """At the running turn's next step, or in a turn of its own."""
        made = Job(context, job)
        if mid_turn and watch.turn is not None and self._within(context, watch, made):
            return made.result.result(timeout=max(1.0, context.remaining_ms / 1000))
        self._alone(context, watch, made)
        return made.result.result(timeout=0)

    def _within(self, context: Any, watch: Watch, job: Job) -> bool:
        """True once the running turn took the job; False where it ended without another step."""
        watch.offer(job)
        try:
            context.wait_until(lambda: job.claimed or watch.turn is None, _WHILE_RUNNING)
        finally:
            watch.withdraw(job)
        return job.claimed

    def _alone(self, context: Any, watch: Watch, job: Job) -> None:
        """In a turn of its own, as soon as no other runs."""
        while not job.result.done():
            context.wait_until(lambda: watch.turn is None, _WHILE_TURN)
            try:
                ran = self._in_loop(self._start(watch, job), context.remaining_ms)
            except idle.NoSuchAgent as error:
                raise client.Refused("unsupported", str(error)) from error
            if not ran:
                context.check()
                self._in_loop(asyncio.sleep(0.2), 1_000)

    async def _start(self, watch: Watch, job: Job) -> bool:
        workspace = idle.workspace_of(self.workspaces(), watch.key)
        return await idle.run(self.home, workspace, watch.key, job, visible=job.answers)

    def _stop(self, watch: Watch) -> None:
        async def stop() -> bool:
            workspace = idle.workspace_of(self.workspaces(), watch.key)
            name = await idle.run_of(workspace, watch.key)
            return bool(await workspace.task_tracker.request_stop(name, reason="user"))

        if not self._in_loop(stop(), 30_000):
            raise client.Failed("QwenPaw knows of no run of this chat that could be stopped")

    def _in_loop(self, step: Coroutine[Any, Any, Any], wait_ms: int) -> Any:
        future = asyncio.run_coroutine_threadsafe(step, self.home.loop)
        try:
            return future.result(timeout=max(1.0, wait_ms / 1000))
        except TimeoutError:
            future.cancel()
            raise client.Failed("QwenPaw did not come to it in time") from None
