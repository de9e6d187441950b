"""What a handler may use beside state and event: the stamp, the rules, the list of changes."""

from __future__ import annotations

from ctxhealth.core.changes import Changes
from ctxhealth.core.rules import Rules
from ctxhealth.core.state import ChatState


class Context:
    """One event's surroundings. ``at``: server ms (a transcript's own), ``seq``: chat_seq.

    ``judged`` becomes True where a finding opened, changed or closed.
    """

    __slots__ = ("at", "changes", "judged", "rules", "seq")

    def __init__(self, seq: int, at: int, changes: Changes, rules: Rules) -> None:
        self.seq, self.at, self.changes, self.rules = seq, at, changes, rules
        self.judged = False

    def odd(self, text: str) -> None:
        """Note an event that makes no sense; it stays on record and changes nothing."""
        self.changes.oddities.append(f"event {self.seq}: {text}")


def push(ring: list[int], value: int, size: int) -> None:
    """Append to a bounded list, oldest out first."""
    ring.append(value)
    if len(ring) > size:
        del ring[0]


def is_troubled(state: ChatState) -> bool:
    """True when somebody waits or something is worse than a remark."""
    return state.turns.waiting_since is not None or state.severity in ("critical", "warning")
