"""Utility models as lines of the fleet's table, each with its state in one word."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ctxhealth.core.states import Meta
from ctxhealth.store.queries import SummarizerRow

# The one place that names how a utility model does.
FAILING = Meta("failing", "bot-off", "critical")
AT_TIMES = Meta("fails at times", "triangle-alert", "warning")
NOT_CALLED = Meta("not called", "minus", "neutral")
ANSWERS = Meta("answers", "circle-check", "good")


@dataclass(frozen=True, slots=True)
class SummarizerLine:
    row: SummarizerRow
    state: Meta

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)


def summarizer_lines(rows: Iterable[SummarizerRow]) -> list[SummarizerLine]:
    return [SummarizerLine(row, _state(row)) for row in rows]


def _state(row: SummarizerRow) -> Meta:
    if row.failing:
        return FAILING
    if row.failed:
        return AT_TIMES
    # Attempts that found nothing to summarise say nothing about the model.
    return NOT_CALLED if row.calls == 0 else ANSWERS
