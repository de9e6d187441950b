"""Token counts of text: exact where the model's vocabulary is here, else a marked estimate."""

from __future__ import annotations

from ctxhealth.tokens.counting import Count, count
from ctxhealth.tokens.estimate import estimate
from ctxhealth.tokens.pool import CountingPool, count_each

__all__ = ["Count", "CountingPool", "count", "count_each", "estimate"]
