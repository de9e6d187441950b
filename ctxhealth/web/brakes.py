"""Brakes on guessing passwords, counted in the audit trail: per account and per address.

An attacker can make an account wait, never lock it: the wait is short, and a one-time link from
the console gets in at any time.
"""

from __future__ import annotations

from ctxhealth.store import queries

FAILED = "refused: wrong name or password"
WINDOW_MS = 10 * 60_000
PER_ACCOUNT = 5
PER_ADDRESS = 30
STEP_S = 30


def wait_s(username: str, address: str, now: int) -> int:
    """Seconds to wait before the next try; 0 lets it through."""
    since = now - WINDOW_MS
    account = queries.login_failures(since=since, username=username)
    peer = queries.login_failures(since=since, address=address)
    return max(_wait(account, PER_ACCOUNT, now), _wait(peer, PER_ADDRESS, now))


def _wait(failures: list[int], allowed: int, now: int) -> int:
    """``failures`` are times, newest first; each try beyond the allowed ones adds a step."""
    over = len(failures) - allowed
    if over < 0:
        return 0
    until = failures[0] + min(10, over + 1) * STEP_S * 1000
    return max(0, -(-(until - now) // 1000))
