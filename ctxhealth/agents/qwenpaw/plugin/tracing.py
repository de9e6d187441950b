"""The manager's methods as this plugin wraps them: they do what they did, and are followed."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from . import attempts
from .attempts import Asked, Attempt, SummaryCall, call_failed
from .blocks import content_of, count, field
from .calls import usage_of
from .care import Care
from .facts import dialect_of, manager_of, reserve_of, window_of
from .failures import failure_of
from .latching import Latching
from .patches import Patches
from .watch import Watch

Find = Callable[[Any, Any], "Watch | None"]


@dataclass
class Tracer:
    """``find(manager, agent)`` gives the chat that a manager works for."""

    care: Care
    patches: Patches
    find: Find
    after: Callable[[Watch, Any, Any], None]
    latching: Latching
    store_failed: Callable[[Any, str], None] | None = None

    def install(self, manager: Any, store: Any, logger: str) -> list[str]:
        """Wrap what is there; the names of what is not."""
        wanted = (
            (manager, "compress", self.compress),
            (manager, "_count_model_input_tokens", self.counting),
            (manager, "_generate_plain_summary", self.summary),
            (manager, "_update_continuation_summary", self.update),
            (manager, "recover_from_context_overflow", self.recovery),
            (store, "note_write_failure", self.write_failure),
        )
        missing = [
            name
            for owner, name, make in wanted
            if owner is None or not self.patches.wrap(owner, name, make)
        ]
        if manager is not None:
            self.tap = _Tap()
            self.logger = logging.getLogger(logger)
            self.logger.addHandler(self.tap)
        return missing

    def remove(self) -> None:
        self.patches.undo()
        if hasattr(self, "tap"):
            self.logger.removeHandler(self.tap)

    # -- wrappers

    def compress(self, original: Any) -> Any:
        tracer = self

        async def compress(
            self: Any, agent: Any, context_config: Any = None, *rest: Any, **more: Any
        ) -> Any:
            attempt = tracer.begin(self, agent, context_config, more.get("instructions"))
            token = attempts.running.set(attempt)
            try:
                return await original(self, agent, context_config, *rest, **more)
            except BaseException as error:
                if attempt is not None:
                    attempt.error = error
                raise
            finally:
                attempts.running.reset(token)
                if attempt is not None:
                    tracer.care.run("compaction report", lambda: tracer.finish(attempt))

        return compress

    def begin(self, manager: Any, agent: Any, config: Any, instructions: Any) -> Attempt | None:
        if not self.patches.active:
            return None

        def made() -> Attempt | None:
            watch = self.find(manager, agent)
            if watch is None:
                return None
            return attempts.begin(watch, manager, agent, config, instructions)

        return self.care.run("compaction start", made)

    def finish(self, attempt: Attempt) -> None:
        watch, agent = attempt.watch, attempt.agent
        attempt.finish()
        if attempt.after is not None and manager_of(agent) is attempt.manager:
            watch.remember(agent.state.context, attempt.after)
        limit = getattr(attempt.error, "hard_limit", None)
        if isinstance(limit, int):
            window = window_of(agent)
            watch.chat.guard_refused(
                int(getattr(attempt.error, "tokens", 0) or 0), limit, window=window,
                reserve=None if window is None else reserve_of(window),
            )  # fmt: skip
        if attempt.id is not None:
            self.latching.after(attempt)
            self.after(watch, agent, attempt.manager)

    def counting(self, original: Any) -> Any:
        async def _count_model_input_tokens(agent: Any, kwargs: Any) -> Any:
            tokens = await original(agent, kwargs)
            attempt = attempts.running.get()
            if attempt is not None and attempt.agent is agent:
                self.care.run("compaction count", lambda: attempt.counted(int(tokens)))
            return tokens

        return _count_model_input_tokens

    def update(self, original: Any) -> Any:
        """The summary: left out where the operator asked for no model call, or a latch holds."""
        tracer = self

        async def _update_continuation_summary(
            self: Any, agent: Any, middle: Any, *rest: Any, **more: Any
        ) -> Any:
            attempt = attempts.running.get()
            why = attempts.asked.get()
            if attempt is not None and tracer.care.run(
                "summary latch", lambda: tracer.without_summary(attempt, why)
            ):
                if getattr(self, "_continuation_summary", None) is not None:
                    # Rendered as stale: it does not tell of what is evicted now.
                    self._summary_update_failed = True
                return None
            return await original(self, agent, middle, *rest, **more)

        return _update_continuation_summary

    def without_summary(self, attempt: Attempt, why: Asked | None) -> bool:
        if why is not None and why.without_model:
            return True
        attempt.latched = not self.latching.allows(attempt)
        return attempt.latched

    def summary(self, original: Any) -> Any:
        tracer = self

        async def _generate_plain_summary(
            self: Any, agent: Any, prompt: Any, *rest: Any, **more: Any
        ) -> Any:
            attempt = attempts.running.get()
            call = None
            if attempt is not None:
                call = tracer.care.run("summary call", lambda: _called(attempt, prompt, more))
            if attempt is None or call is None:
                return await original(self, agent, prompt, *rest, **more)
            try:
                text = await original(self, _Heard(agent, call), prompt, *rest, **more)
            except BaseException as error:
                problem = error
                tracer.care.run("summary call", lambda: _failed(attempt, call, problem))
                raise
            tracer.care.run("summary call", lambda: _answered(attempt, call, text))
            return text

        return _generate_plain_summary

    def recovery(self, original: Any) -> Any:
        async def recover_from_context_overflow(self: Any, *given: Any, **more: Any) -> Any:
            token = attempts.asked.set(Asked("reactive"))
            try:
                return await original(self, *given, **more)
            finally:
                attempts.asked.reset(token)

        return recover_from_context_overflow

    def noted(self, store: Any, said: str) -> None:
        attempt = attempts.running.get()
        if attempt is not None:
            attempt.persist_error = said
        elif self.store_failed is not None:
            self.store_failed(store, said)

    def write_failure(self, original: Any) -> Any:
        """Called in worker threads; the task's context goes with it."""
        tracer = self

        def note_write_failure(self: Any, error: Any, *rest: Any, **more: Any) -> Any:
            said = f"{type(error).__name__}: {error}"
            tracer.care.run("write failure", lambda: tracer.noted(self, said))
            return original(self, error, *rest, **more)

        return note_write_failure


def _called(attempt: Attempt, prompt: Any, more: dict[str, Any]) -> SummaryCall:
    request = attempt.watch.chat.request_sent(
        purpose="utility", local=count(str(prompt)), max_output=more.get("max_tokens"),
        attempt=None,
    )  # fmt: skip
    call = SummaryCall(request)
    attempt.calls.append(call)
    return call


def _answered(attempt: Attempt, call: SummaryCall, text: Any) -> None:
    call.text = str(text or "")
    attempt.watch.chat.model_replied(
        call.request, purpose="utility", usage=call.usage,
        content=content_of([{"type": "text", "text": call.text}]),
        model=getattr(getattr(attempt.agent, "model", None), "model", None),
    )  # fmt: skip


def _failed(attempt: Attempt, call: SummaryCall, error: BaseException) -> None:
    call_failed(call, error)
    fields = {**failure_of(error), "detail": call.detail}
    if call.error == "timeout":
        fields["error"] = "timeout"
    attempt.watch.chat.model_failed(call.request, purpose="utility", **fields)


class _Heard:
    """An agent whose model's usage is listened to; the summary uses nothing else of it."""

    def __init__(self, agent: Any, call: SummaryCall) -> None:
        self._agent, self._call = agent, call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    async def model(self, *given: Any, **more: Any) -> Any:
        response = await self._agent.model(*given, **more)
        if hasattr(response, "__anext__"):
            return self._listened(response)
        self._hear(response)
        return response

    async def _listened(self, stream: Any) -> AsyncGenerator[Any, None]:
        try:
            async for chunk in stream:
                self._hear(chunk)
                yield chunk
        finally:
            await stream.aclose()

    def _hear(self, chunk: Any) -> None:
        try:
            usage = usage_of(field(chunk, "usage"), dialect_of(self._agent.model))
        except Exception:
            usage = None
        self._call.usage = usage or self._call.usage


class _Tap(logging.Handler):
    """Reads the manager's own word for how a run ended from its timing line."""

    def emit(self, record: logging.LogRecord) -> None:
        attempt = attempts.running.get()
        if attempt is None:
            return
        try:
            self._read(attempt, record)
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Quiet: the host's log is not ours."""

    def _read(self, attempt: Attempt, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("scroll: compact timing") and record.args:
            attempt.outcome = str(record.args[0]) if isinstance(record.args, tuple) else None
        elif "continuation summary update" in str(record.msg) and record.exc_info:
            attempt.summary_failed = record.exc_info[1]
