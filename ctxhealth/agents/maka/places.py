"""What is remembered of each session, kept in the outbox with the events that it tells of."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ctxhealth.agents.maka.known import Known

Statement = tuple[str, tuple[Any, ...]]
TABLE: Statement = (
    "CREATE TABLE IF NOT EXISTS maka_sessions(id TEXT PRIMARY KEY, state TEXT NOT NULL)"
    " WITHOUT ROWID",
    (),
)


def keep(known: Known) -> Statement:
    state = json.dumps(known.saved(), separators=(",", ":"))
    return "INSERT OR REPLACE INTO maka_sessions VALUES (?, ?)", (known.id, state)


def load(rows: Callable[..., list[tuple[Any, ...]]]) -> dict[str, Known]:
    """Every session that was reported before. Raises ValueError for another version's state."""
    found = (json.loads(state) for (state,) in rows("SELECT state FROM maka_sessions"))
    return {state["id"]: Known.restored(state) for state in found}
