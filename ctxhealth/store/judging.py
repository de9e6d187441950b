"""By what rules a chat is judged: the table of windows, and operators' words above it.

Rules are an input of the fold beside the log, so they change only where every chat they touch is
judged again (``rejudging``): what is shown stays what the log gives under the present rules.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from ctxhealth.core.rules import Rules
from ctxhealth.core.rules import WindowOverride as Override
from ctxhealth.core.tunable import thresholds_with
from ctxhealth.core.windows import WindowTable, packaged_table
from ctxhealth.store.models import Setting, WindowOverride
from ctxhealth.store.models.settings import THRESHOLD

_LOG = logging.getLogger(__name__)


@lru_cache(maxsize=20_000)
def rules_of(project: int, agent: int) -> Rules:
    """Thresholds, model table and overrides for the chats of one agent."""
    return Rules(
        thresholds=thresholds_with(thresholds_set(project)),
        lookup=table().lookup,
        overrides=_overrides(project, agent),
    )


@lru_cache(maxsize=1)
def table() -> WindowTable:
    """The table in the data folder where there is one, else that of this release."""
    path = table_path()
    try:
        return WindowTable.from_text(path.read_text("utf-8"))
    except FileNotFoundError:
        return packaged_table()
    except (OSError, ValueError) as error:
        _LOG.warning("%s is passed over: %s", path, error)
        return packaged_table()


def table_path() -> Path:
    return Path(settings.CTXHEALTH_DATA_DIR) / "model_windows.json"


def forget() -> None:
    """Read table and overrides again when they are next asked for."""
    rules_of.cache_clear()
    table.cache_clear()


def thresholds_set(project: int) -> dict[str, float]:
    """Thresholds that somebody set, by field name, as ``Thresholds`` has them."""
    rows = Setting.objects.filter(project_id=project, ended_at=None, name__startswith=THRESHOLD)
    return {name[len(THRESHOLD) :]: value for name, value in rows.values_list("name", "value")}


def _overrides(project: int, agent: int) -> tuple[Override, ...]:
    """The most particular first: one agent's, a provider's, an exact id, the longer pattern."""
    rows = WindowOverride.objects.filter(Q(agent=agent) | Q(agent=None))
    rows = rows.filter(project=project, ended_at=None)
    return tuple(
        Override(
            model=row.model,
            window=row.window,
            max_input=row.max_input,
            provider=row.provider or None,
            by=row.by_name,
        )
        for row in sorted(rows, key=_particular)
    )


def _particular(row: WindowOverride) -> tuple[bool, bool, bool, int, int]:
    pattern = "*" in row.model or "?" in row.model
    return (row.agent_id is None, not row.provider, pattern, -len(row.model), -row.pk)
