"""The operator's commands: received, begun at most once, answered, remembered."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import ledger
from .bodies import body
from .context import Cancelled, CommandContext, Expired, Failed, Refused
from .epochs import now_ms
from .fences import Fence, Track, mismatch
from .journal import Journal
from .runtime import runtime
from .texts import TextPolicy

log = logging.getLogger("ctxhealth.client")
KINDS = (
    "compact_fallback", "clear_latch", "compact_summarize", "continue", "stop_turn",
    "rescue", "repair_pairs", "restore_backup", "snapshot", "ping",
)  # fmt: skip
_READING = ("ping", "snapshot")
_MAX_RUNNING = 32
_SAVES = 5

Handler = Callable[[CommandContext], Any]


@dataclass(frozen=True)
class Registered:
    """``safe_point``: wait until no model call and no compaction of the chat is open."""

    run: Handler
    safe_point: bool = False
    manual_start: bool = False
    loop: asyncio.AbstractEventLoop | None = None


class CommandDesk:
    """Handlers by kind, or by kind and chat. ``fence`` is the host's own account of a chat."""

    def __init__(self, journal: Journal, texts: TextPolicy) -> None:
        self.journal = journal
        self.handlers: dict[tuple[str, str | None], Registered] = {}
        self.fence: Fence | None = None
        self.after_success: Callable[[CommandContext, dict[str, Any]], None] | None = None
        self._texts = texts
        self._lock = threading.Lock()
        self._open: dict[str, CommandContext] = {}
        self.handlers["ping", None] = Registered(lambda context: {})

    @property
    def changed(self) -> threading.Condition:
        return self.journal.tracks.changed

    def kinds(self) -> list[str]:
        """What this agent can do, in the protocol's order."""
        able = {kind for kind, _ in self.handlers}
        return [kind for kind in KINDS if kind in able]

    # -- from the uplink's thread

    def recover(self) -> None:
        """Commands that an earlier process began and never ended are reported unknown."""
        outbox = self.journal.outbox
        for entry in ledger.interrupted(outbox):
            if entry.id not in runtime().running:
                why = "the agent's process ended between start and result"
                self._save(entry.id, entry.chat, entry.kind, "unknown", {"reason": why})
        ledger.forget_old(outbox)

    def deliver(self, frame: Mapping[str, Any], arrived: float) -> None:
        """A command, new or delivered again. Never raises."""
        try:
            self._deliver(CommandContext(self, frame, arrived), frame, arrived)
        except Exception:
            log.exception("command %s could not be taken", frame.get("id"))

    def cancel(self, command: str) -> None:
        with self._lock:
            context = self._open.get(command)
        if context is not None and not context.started:
            context.cancelled = True
            with self.changed:
                self.changed.notify_all()

    def _deliver(self, context: CommandContext, frame: Mapping[str, Any], arrived: float) -> None:
        known = ledger.find(self.journal.outbox, context.id)
        with self._lock:
            running = context.id in self._open or context.id in runtime().running
        if known is not None and (known.ended or running or known.state == "started"):
            self._again(known, running)
            return
        late = (time.monotonic() - arrived) * 1000 > _millis(frame.get("deliver_ms"))
        if late:
            self._end(context, "expired", {"reason": "delivered too late"})
            return
        self._admit(context)

    def _again(self, known: ledger.Entry, running: bool) -> None:
        """Replay what is on record; never act a second time."""
        if known.ended or running:
            self.journal.record([known.result], durable=False)
        else:
            why = "begun before and never ended"
            self._save(known.id, known.chat, known.kind, "unknown", {"reason": why})

    def _admit(self, context: CommandContext) -> None:
        track = self._track(context)
        context.seen = track.confirmed
        self._save(context.id, context.chat, context.kind, "received", {}, durable=False)
        registered = self._handler(context)
        if registered is None:
            self._end(context, "refused", self._unsupported(context))
            return
        with self._lock:
            holder = self._holder(context)
            if holder is None and len(self._open) < _MAX_RUNNING:
                self._open[context.id] = context
                holder = context
        if holder is not context:
            name = holder.id if holder else f"{_MAX_RUNNING} commands"
            self._end(context, "refused", {"reason": "busy", "detail": f"{name} is open"})
            return
        threading.Thread(
            target=self._run,
            args=(context, registered),
            name=f"ctxhealth-{context.kind}",
            daemon=True,
        ).start()

    def _handler(self, context: CommandContext) -> Registered | None:
        own = self.handlers.get((context.kind, context.chat))
        return own or self.handlers.get((context.kind, None))

    def _holder(self, context: CommandContext) -> CommandContext | None:
        """Another command that changes the same chat and has not ended."""
        if context.kind in _READING:
            return None
        for other in self._open.values():
            if other.chat == context.chat and other.kind not in _READING:
                return other
        return None

    def _unsupported(self, context: CommandContext) -> dict[str, Any]:
        able = [kind for kind in self.kinds() if kind != "ping"]
        instead = f"this agent can: {', '.join(able)}" if able else "this agent takes no commands"
        return {"reason": "unsupported", "detail": f"no {context.kind} here; {instead}"}

    # -- in the command's own thread

    def _run(self, context: CommandContext, registered: Registered) -> None:
        state, fields = "failed", {}
        try:
            if registered.safe_point:
                context.wait_for_safe_point()
            if not registered.manual_start:
                context.start()
            result = _call(registered, context)
            context.start()
            state, fields = "succeeded", _fields(result)
            if self.after_success is not None:
                self.after_success(context, fields)
        except Refused as refusal:
            state, fields = "refused", {"reason": refusal.reason, "detail": refusal.detail}
        except Cancelled:
            state, fields = "cancelled", {"reason": "cancelled before it started"}
        except Expired:
            state, fields = "expired", {"reason": "the lease ran out before it could start"}
        except Failed as failure:
            fields = {"reason": failure.reason, "detail": failure.detail}
        except BaseException as error:
            log.exception("command %s %s failed", context.kind, context.id)
            fields = {"reason": f"{type(error).__name__}: {error}"[:400]}
        finally:
            self._end(context, state, fields)

    def begin(self, context: CommandContext) -> None:
        """The moment of acting: fence, then ``started`` on the disk."""
        with self._lock:
            context.check()
            context.started = True
        try:
            self._compare(context)
            runtime().running.add(context.id)
            context.ended_before = self._track(context).ended
            self._write(context.id, context.chat, context.kind, "started", {})
        except Refused:
            context.started = False
            raise
        except sqlite3.Error as error:
            raise Refused(
                "busy", f"the outbox cannot be written, so nothing was done: {error}"
            ) from error

    def _compare(self, context: CommandContext) -> None:
        own = self.fence(context.chat) if self.fence and context.chat is not None else {}
        track, epoch = self._track(context), self.journal.outbox.epoch
        with self.changed:
            why = mismatch(context.expected, epoch, track, context.seen, own)
        if why is not None:
            raise Refused("stale", why)

    def tell(self, context: CommandContext, state: str, **fields: Any) -> None:
        if not context.started or state != "waiting":
            self._save(context.id, context.chat, context.kind, state, fields, durable=False)

    def busy(self, context: CommandContext) -> str | None:
        with self.changed:
            return self._track(context).busy()

    def _track(self, context: CommandContext) -> Track:
        return self.journal.tracks.of(context.chat) if context.chat is not None else Track()

    def _end(self, context: CommandContext, state: str, fields: dict[str, Any]) -> None:
        try:
            self._save(context.id, context.chat, context.kind, state, fields)
        finally:
            runtime().running.discard(context.id)
            with self._lock:
                self._open.pop(context.id, None)

    # -- on record

    def _save(
        self,
        command: str,
        chat: str | None,
        kind: str,
        state: str,
        fields: dict[str, Any],
        durable: bool = True,
    ) -> None:
        """As ``_write``, but a full disk is tried again: the result must not be lost."""
        for attempt in range(_SAVES):
            try:
                self._write(command, chat, kind, state, fields, durable)
                return
            except sqlite3.Error as error:  # noqa: PERF203
                log.error("command %s: %s is not on record yet: %s", command, state, error)
                time.sleep(min(4.0, 0.2 * 2**attempt))

    def _write(
        self,
        command: str,
        chat: str | None,
        kind: str,
        state: str,
        fields: dict[str, Any],
        durable: bool = True,
    ) -> None:
        now = now_ms()
        told = {"command": command, "state": state, **fields}
        raw = body("command.progress", now, chat, told, self._texts)
        entry = ledger.Entry(command, chat, kind, state, raw)
        self.journal.record([raw], [ledger.noted(entry, now)], durable=durable)


def _call(registered: Registered, context: CommandContext) -> Any:
    """Run a handler, a coroutine in the host's loop if there is one, else in its own."""
    result = registered.run(context)
    if not inspect.isawaitable(result):
        return result
    if registered.loop is None:
        return asyncio.run(_awaited(result))
    return asyncio.run_coroutine_threadsafe(_awaited(result), registered.loop).result()


async def _awaited(result: Any) -> Any:
    return await result


def _fields(result: Any) -> dict[str, Any]:
    """A handler's dictionary as progress fields; keys the protocol has no name for go to detail."""
    if not isinstance(result, Mapping):
        return {} if result is None else {"detail": result}
    named = ("before", "after", "backup", "reason", "detail")
    fields = {key: result[key] for key in named if key in result}
    rest = {str(key): value for key, value in result.items() if key not in named}
    if rest:
        fields["detail"] = rest if "detail" not in fields else {"detail": fields["detail"], **rest}
    return fields


def _millis(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 60_000.0
