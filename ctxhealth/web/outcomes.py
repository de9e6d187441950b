"""How the fleet's compactions ended, as a small stacked bar and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from ctxhealth.core.model import Outcome
from ctxhealth.web import states
from ctxhealth.web.svg import bar_svg


@dataclass(frozen=True, slots=True)
class OutcomeBar:
    """``parts`` are (meta, count), the good ones first."""

    total: int
    parts: tuple[tuple[states.Meta, int], ...]
    svg: SafeString

    @property
    def worst_first(self) -> tuple[tuple[states.Meta, int], ...]:
        return self.parts[::-1]


_TONE_ORDER = {"good": 0, "active": 1, "info": 1, "neutral": 2, "warning": 3, "critical": 4}


def outcome_bar(counts: Mapping[Outcome, int]) -> OutcomeBar:
    total = sum(counts.values())
    parts = sorted(
        ((states.outcome(outcome), count) for outcome, count in counts.items() if count),
        key=lambda part: (_TONE_ORDER.get(part[0].tone, 2), -part[1]),
    )
    widths = [(f"o-{meta.tone}", 100 * count / total) for meta, count in parts]
    name = ", ".join(f"{count} {meta.label.lower()}" for meta, count in parts) or "no compactions"
    return OutcomeBar(total, tuple(parts), bar_svg(widths, name, 10))
