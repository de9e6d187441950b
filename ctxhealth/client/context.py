"""One command in an agent's hands, and the ways a handler can end it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

REFUSALS = ("stale", "unsupported", "busy", "holder_alive")


class Refused(Exception):
    """The handler will not act. ``reason``: stale, unsupported, busy or holder_alive."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        if reason not in REFUSALS:
            raise ValueError(f"reason: {reason!r} is not one of {', '.join(REFUSALS)}")
        super().__init__(detail or reason)
        self.reason, self.detail = reason, detail


class Failed(Exception):
    """The handler acted and it did not work. ``reason`` is one sentence for the operator."""

    def __init__(self, reason: str, detail: Any = None) -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


class Cancelled(Exception):
    """The operator took the command back before it started. Let it pass."""


class Expired(Exception):
    """The command's lease ran out before it started. Let it pass."""


class Host(Protocol):
    """What a context needs of the desk."""

    def begin(self, context: CommandContext) -> None: ...
    def tell(self, context: CommandContext, state: str, **fields: Any) -> None: ...
    def busy(self, context: CommandContext) -> str | None: ...
    @property
    def changed(self) -> threading.Condition: ...


class CommandContext:
    """Given to a handler. Everything but the methods is read-only.

    ``chat`` is the agent's chat id or None; ``expected`` the fence; ``by`` and ``reason`` who
    pressed and why.
    """

    def __init__(self, host: Host, frame: Mapping[str, Any], arrived: float) -> None:
        self._host = host
        self.id = str(frame.get("id"))
        self.kind = str(frame.get("kind"))
        self.chat = str(frame["chat"]) if frame.get("chat") is not None else None
        self.args = _mapping(frame.get("args"))
        self.expected = _mapping(frame.get("expected"))
        self.reason = str(frame.get("reason") or "")
        self.by = str(frame.get("by") or "")
        self.started = False
        self.cancelled = False
        # Compactions of this chat that the server knew of when the command came.
        self.seen = 0
        # Compactions that had ended here when it began.
        self.ended_before = 0
        self._deadline = arrived + float(frame.get("lease_s") or 600)

    @property
    def remaining_ms(self) -> int:
        """Milliseconds of the lease that are left, by this machine's monotonic clock."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))

    def progress(self, state: str = "waiting", reason: str | None = None, **fields: Any) -> None:
        """Report ``waiting`` with what for; before, after, backup, detail may be added."""
        self._host.tell(self, state, reason=reason, **fields)

    def start(self) -> None:
        """Compare the fence and put ``started`` on the disk; act only after this returned.

        Raises Refused, Cancelled or Expired: let them pass. Called for you unless the handler
        was registered with ``manual_start=True``. Once started, further calls do nothing.
        """
        if not self.started:
            self._host.begin(self)

    def check(self) -> None:
        """Raises Cancelled or Expired where the command should no longer begin."""
        if self.started:
            return
        if self.cancelled:
            raise Cancelled(self.id)
        if self.remaining_ms <= 0:
            raise Expired(self.id)

    def wait_until(self, ready: Callable[[], bool], why: str, poll_s: float = 0.2) -> None:
        """Block until ``ready()``, shown as waiting with ``why``. Raises Cancelled, Expired.

        ``ready`` is asked again whenever an event of any chat is reported, and every ``poll_s``.
        """
        if ready():
            return
        self.progress("waiting", why)
        with self._host.changed:
            while not ready():
                self.check()
                self._host.changed.wait(min(poll_s, self.remaining_ms / 1000))

    def wait_for_safe_point(self) -> None:
        """Block while a model call or a compaction of this chat is open, as reported."""
        told: str | None = None
        while True:
            why = self._host.busy(self)
            if why is None:
                return
            if why != told:
                self.progress("waiting", why)
                told = why
            self.check()
            with self._host.changed:
                self._host.changed.wait(min(0.5, self.remaining_ms / 1000))


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
