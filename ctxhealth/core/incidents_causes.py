"""What leads to what: the one causal order, and the root cause by it.

Upstream first. A link of the chain is the root when it leads, through any number of the steps
below, to the critical finding that opened the incident, began no later than that, and no other
such link stands further up. A later critical finding moves the root where what led to it stands
further up and leads to the old root as well. What is not in this table causes no incident.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_NO_ANSWER = ("hung", "silent_empty", "turns_failing", "stopped", "unanswered")
_TOO_LARGE = ("over_trigger", "overdue", "projected_over", "over_window", "over_budget")
_FAILED = tuple(
    f"summarizer_{error}"
    for error in (
        "quota", "auth", "rate_limit", "provider", "network", "timeout", "overflow", "empty",
        "malformed", "truncated", "failed", "other",
    )
)  # fmt: skip
_UNJUSTIFIED = ("latch_structural", "latch_already_compacted")
_LATCHES = (
    "latch_summarizer", "latch_exhausted", "latch_no_gain", "latch_open_call", "latch_cooldown",
    "latch_lock_held", "latch_inferred",
)  # fmt: skip
_LATCHED = (*_UNJUSTIFIED, *_LATCHES, "latched_unjustified", "latched")
_NO_RELIEF = ("stalled", "looping")

LEADS_TO: dict[str, tuple[str, ...]] = {
    "agent_offline": _NO_ANSWER,
    "broken_pairs": ("lost_tail", "bytes_limit", *_NO_ANSWER),
    "lost_system": ("repeating", *_NO_ANSWER),
    "reserve_exceeds_window": ("looping", "stalled", *_TOO_LARGE, *_NO_ANSWER),
    "floor_exceeds_budget": ("looping", "stalled", *_TOO_LARGE, *_NO_ANSWER),
    "cumulative_usage": ("looping",),
    "provider_truncates": ("lost_tail", "repeating", *_NO_ANSWER),
    "trigger_unreachable": ("over_window", "over_budget"),
    "undercount": ("overdue", "over_window", "over_budget", "silent_empty"),
    "summarizer_too_small": (*_FAILED, "summarizer_failing", "emptied"),
    "summary_reserve": (*_FAILED, "summarizer_failing", "emptied"),
    **dict.fromkeys(_FAILED, ("summarizer_failing", "emptied", *_LATCHED, *_NO_RELIEF)),
    "summarizer_failing": (
        "emptied",
        *_LATCHED,
        *_NO_RELIEF,
        "turns_failing",
        "stopped",
        "unanswered",
    ),
    "emptied": ("lost_tail", "stale_tail", "repeating", *_NO_RELIEF, *_NO_ANSWER),
    "lost_tail": ("repeating", *_NO_ANSWER),
    "stale_tail": ("repeating", *_NO_ANSWER),
    "durability_failed": (*_LATCHED, *_NO_RELIEF),
    "timed_out": (*_LATCHED, *_NO_RELIEF),
    **dict.fromkeys(_UNJUSTIFIED, ("latched_unjustified", "latched", *_NO_RELIEF, *_TOO_LARGE)),
    **dict.fromkeys(_LATCHES, ("latched_unjustified", "latched", *_NO_RELIEF, *_TOO_LARGE)),
    "latched_unjustified": (*_NO_RELIEF, *_TOO_LARGE, *_NO_ANSWER),
    "latched": (*_NO_RELIEF, *_TOO_LARGE, *_NO_ANSWER),
    "grew": (*_NO_RELIEF, *_TOO_LARGE),
    "no_progress": _NO_RELIEF,
    "nothing_foldable": _NO_RELIEF,
    "jump": _TOO_LARGE,
    "retries_grow_prompt": (*_TOO_LARGE, *_NO_ANSWER),
    "stalled": (*_TOO_LARGE, *_NO_ANSWER),
    "looping": (*_TOO_LARGE, *_NO_ANSWER),
    "over_trigger": ("projected_over", "over_window", "over_budget"),
    "overdue": ("projected_over", "over_window", "over_budget"),
    "projected_over": ("over_window", "over_budget"),
    "bytes_limit": _NO_ANSWER,
    "over_window": _NO_ANSWER,
    "over_budget": _NO_ANSWER,
    "hung": ("turns_failing", "stopped", "unanswered"),
    "silent_empty": ("turns_failing", "stopped", "unanswered"),
    "repeating": ("stopped", "unanswered"),
    "turns_failing": ("stopped", "unanswered"),
    "stopped": ("unanswered",),
    "unanswered": (),
}
RANK: dict[str, int] = {code: rank for rank, code in enumerate(LEADS_TO)}


def _closure() -> dict[str, frozenset[str]]:
    """Everything that each code leads to, however many steps away."""
    found: dict[str, frozenset[str]] = {}
    for code in LEADS_TO:
        reached: set[str] = set()
        ahead = list(LEADS_TO[code])
        while ahead:
            step = ahead.pop()
            if step not in reached:
                reached.add(step)
                ahead.extend(LEADS_TO[step])
        found[code] = frozenset(reached)
    return found


EFFECTS = _closure()


class Evidence(NamedTuple):
    """One link as the table sees it; ``critical_seq``: since which event it is critical."""

    code: str
    seq: int
    critical_seq: int | None


def root_of(chain: Iterable[Evidence], opened_seq: int) -> str | None:
    """The root's code: the furthest upstream of what leads to the findings that opened it."""
    known = [link for link in chain if link.code in RANK and link.seq <= opened_seq]
    opening = {link.code for link in known if link.critical_seq == opened_seq}
    roots = [link for link in known if link.code in opening or opening & EFFECTS[link.code]]
    if not roots:
        return None
    return min(roots, key=lambda link: RANK[link.code]).code


def belongs(code: str, root: str, criticals: frozenset[str]) -> bool:
    """Whether a link is part of the story: critical, on the way to it, or a result of the root."""
    if code in criticals or code == root:
        return True
    return bool(EFFECTS.get(code, frozenset()) & criticals) or code in EFFECTS.get(root, ())
