"""Nothing of ours may fail or slow a user's turn: what a hook raises is swallowed and counted."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

log = logging.getLogger("ctxhealth.qwenpaw")
T = TypeVar("T")


class Care:
    """Counts what went wrong per place; each place is told once, to the log and to ``tell``."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.tell: Callable[[str], None] | None = None

    def run(self, where: str, step: Callable[[], T]) -> T | None:
        """``step()``, or None where it raised."""
        try:
            return step()
        except Exception as error:
            self.failed(where, error)
            return None

    def failed(self, where: str, error: BaseException) -> None:
        self.counts[where] += 1
        if self.counts[where] > 1:
            return
        log.warning("ctxhealth: %s failed and is left out", where, exc_info=error)
        if self.tell is not None:
            try:
                self.tell(f"the plugin's {where} failed: {type(error).__name__}: {error}")
            except Exception:
                log.debug("ctxhealth: could not be told", exc_info=True)
