"""Ids that sort by time."""

from __future__ import annotations

import secrets


def uuid7(now_ms: int) -> str:
    """A UUIDv7 (RFC 9562) of the given moment, as text."""
    value = (now_ms & (2**48 - 1)) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    value |= 0b10 << 62 | secrets.randbits(62)
    digits = f"{value:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
