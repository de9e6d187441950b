"""What admins set at run time, and how far chats are judged by it."""

from __future__ import annotations

from dataclasses import dataclass

from ctxhealth.store.models import Chat, Judging, Setting
from ctxhealth.store.models.settings import RETENTION_DAYS


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingRow:
    """One value in force, in the unit the code uses."""

    name: str
    value: float
    reason: str
    by: str
    created_at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgingRow:
    """``pending``: some chats are still judged by older rules. ``done`` of ``total`` are not."""

    pending: bool
    done: int
    total: int
    changed: int
    started_at: int | None
    finished_at: int | None


def settings_in_force(*, project: int, prefix: str = "") -> dict[str, SettingRow]:
    """By name."""
    rows = Setting.objects.filter(project_id=project, ended_at=None, name__startswith=prefix)
    return {
        row.name: SettingRow(
            name=row.name,
            value=row.value,
            reason=row.reason,
            by=row.by_name,
            created_at=row.created_at,
        )
        for row in rows
    }


def retention_days(*, project: int) -> int | None:
    """Days that a quiet chat is kept; None keeps everything."""
    row = Setting.objects.filter(project_id=project, ended_at=None, name=RETENTION_DAYS).first()
    return None if row is None else int(row.value)


def judging_status(*, project: int) -> JudgingRow:
    row = Judging.objects.filter(project_id=project).first() or Judging()
    pending = row.judged < row.wanted
    return JudgingRow(
        pending=pending,
        done=row.done,
        total=Chat.objects.filter(project_id=project).count() if pending else row.done,
        changed=row.changed,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
