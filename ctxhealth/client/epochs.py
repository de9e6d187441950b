"""Names that sort by time: stream epochs (UUIDv7) and ids for what the host left unnamed."""

from __future__ import annotations

import itertools
import os
import time
import uuid


def mint_epoch(now_ms: int, entropy: bytes) -> str:
    """A UUIDv7 from milliseconds since the epoch and at least 10 random bytes."""
    value = (now_ms & (2**48 - 1)) << 80 | int.from_bytes(entropy[:10], "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def new_epoch() -> str:
    return mint_epoch(now_ms(), os.urandom(10))


def now_ms() -> int:
    """Milliseconds since the epoch, this machine's clock."""
    return time.time_ns() // 1_000_000


class Names:
    """Ids unique over restarts: a stamp of this process and a counter. Safe from any thread."""

    def __init__(self) -> None:
        self._stamp = f"{now_ms():x}{os.urandom(2).hex()}"
        self._count = itertools.count(1)

    def mint(self, prefix: str) -> str:
        return f"{prefix}-{self._stamp}-{next(self._count)}"
