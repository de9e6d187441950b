"""Thresholds and retention: set and reset by admins, in force at once, never changed in place."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from ctxhealth.core.tunable import BY_NAME
from ctxhealth.store import judging
from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import Judging, Setting
from ctxhealth.store.models.settings import RETENTION_DAYS, THRESHOLD
from ctxhealth.store.projects import default_project
from ctxhealth.store.through import call
from ctxhealth.store.writes.audit import audit, name_of

RETENTION_LOW, RETENTION_HIGH = 1, 3_650


def threshold_set(*, name: str, shown: float, reason: str = "", by: Any = None) -> bool:
    """Set one threshold in its own unit (``core.tunable``); False where it was so already.

    Stored chats are judged anew by the running server. Raises ValueError naming it and why.
    """
    tunable = BY_NAME.get(name)
    if tunable is None:
        raise ValueError(f"name: no threshold is called {name[:60]!r}")
    value = float(tunable.stored(shown))
    # The default is the absence of a word, so that a better default of a later release counts.
    wanted = None if shown == tunable.default else value
    changed = call(_set, THRESHOLD + name, wanted, reason, by)
    if changed:
        judging.forget()
    return changed


def threshold_reset(*, name: str, reason: str = "", by: Any = None) -> bool:
    """Back to the default; False where it is the default already."""
    if name not in BY_NAME:
        raise ValueError(f"name: no threshold is called {name[:60]!r}")
    return threshold_set(name=name, shown=BY_NAME[name].default, reason=reason, by=by)


def retention_set(*, days: int | None, reason: str = "", by: Any = None) -> bool:
    """Keep quiet chats this many days; None keeps everything. Raises ValueError."""
    if days is not None and not RETENTION_LOW <= days <= RETENTION_HIGH:
        raise ValueError(f"days: {RETENTION_LOW} to {RETENTION_HIGH}, not {days}")
    return call(_set, RETENTION_DAYS, None if days is None else float(days), reason, by)


def rules_changed() -> None:
    """Every chat is to be judged anew; inside the transaction that changes the rules."""
    project = default_project()
    Judging.objects.get_or_create(project=project)
    Judging.objects.filter(project=project).update(wanted=F("wanted") + 1)


def _set(name: str, value: float | None, reason: str, by: Any) -> bool:
    project, now = default_project(), now_ms()
    open_now = Setting.objects.filter(project=project, name=name, ended_at=None)
    before = open_now.first()
    if (before.value if before else None) == value:
        return False
    open_now.update(ended_at=now)
    if value is not None:
        Setting.objects.create(
            project=project,
            name=name,
            value=value,
            reason=reason.strip()[:500],
            by=by if getattr(by, "pk", None) is not None else None,
            by_name=name_of(by),
            created_at=now,
        )
    if name.startswith(THRESHOLD):
        rules_changed()
    audit(
        action="setting.set" if value is not None else "setting.reset",
        result="done",
        by=by,
        target=name,
        reason=reason,
        detail={"before": before.value if before else None, "after": value},
    )
    return True
