"""Operators' words about windows that are in force."""

from __future__ import annotations

from dataclasses import dataclass

from ctxhealth.store.models import WindowOverride


@dataclass(frozen=True, kw_only=True, slots=True)
class OverrideRow:
    """``agent`` None is every agent, ``provider`` blank any; sizes are tokens."""

    id: int
    model: str
    provider: str
    agent: str | None
    window: int
    max_input: int | None
    note: str
    by: str
    created_at: int


def window_overrides() -> list[OverrideRow]:
    """Those in force, by model."""
    rows = WindowOverride.objects.filter(ended_at=None).select_related("agent")
    return [
        OverrideRow(
            id=row.pk,
            model=row.model,
            provider=row.provider,
            agent=row.agent.name if row.agent is not None else None,
            window=row.window,
            max_input=row.max_input,
            note=row.note,
            by=row.by_name,
            created_at=row.created_at,
        )
        for row in rows.order_by("model", "id")
    ]
