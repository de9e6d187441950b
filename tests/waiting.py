"""Waiting for what another thread does, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 20.0


def until(found: Callable[[], object], seconds: float = SECONDS) -> None:
    """Poll until ``found`` is truthy."""
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.01)
