"""By what rules a project's chats are judged."""

from __future__ import annotations

from functools import lru_cache

from ctxhealth.core.rules import Rules, default_rules


@lru_cache(maxsize=1_000)
def rules_of(project: int) -> Rules:
    """Thresholds, model table and overrides of one project; the defaults until it has its own."""
    del project
    return default_rules()
