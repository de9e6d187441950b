"""A newer table of model windows, put in the place of the one in use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ctxhealth.core.windows import WindowTable
from ctxhealth.store import judging
from ctxhealth.store.through import call
from ctxhealth.store.writes.audit import audit
from ctxhealth.store.writes.settings import rules_changed


def model_table_put(*, text: str, by: Any = None) -> None:
    """Use this table (its own form, as ``store.model_table.table_text`` makes it) from now on.

    Raises ValueError where it is no table or cannot be written.
    """
    table = WindowTable.from_text(text)
    path = judging.table_path()
    try:
        put(path, text)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}") from error
    call(_changed, len(table.models), by)
    judging.forget()


def put(path: Path, text: str) -> None:
    """Whole or not at all: whoever reads meanwhile gets the old one or the new one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _changed(models: int, by: Any) -> None:
    rules_changed()
    audit(action="model_table.put", result="done", by=by, target=f"{models:,} models")
