"""What the person at the terminal sees: progress, waiting, a summary."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from ctxhealth.core.wording import plural

_EVERY_S = 2.0


def left_over(events: int) -> str:
    """What an end before the server had everything leaves, as a sentence."""
    waits = "waits" if events == 1 else "wait"
    return f"{plural(events, 'event')} {waits} in the outbox for the next time."


class Console:
    """Troubles go to ``err``, the rest to ``out``; ``quiet`` leaves out the rest."""

    def __init__(
        self, *, quiet: bool = False, out: TextIO | None = None, err: TextIO | None = None
    ) -> None:
        self._out, self._err = out or sys.stdout, err or sys.stderr
        self._quiet = quiet
        self._trouble: str | None = None
        self._next = time.monotonic() + _EVERY_S

    def say(self, text: str) -> None:
        if not self._quiet:
            print(text, file=self._out, flush=True)

    def warn(self, text: str) -> None:
        print(text, file=self._err, flush=True)

    def once(self, trouble: str) -> None:
        """Say a trouble when it begins, not on every round."""
        if self._trouble is None:
            self.warn(trouble)
        self._trouble = trouble

    def heal(self, text: str) -> None:
        """The trouble is over."""
        if self._trouble is not None:
            self.warn(text)
        self._trouble = None

    def progress(self, text: str) -> None:
        """At most every two seconds."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY_S
            self.say(text)
