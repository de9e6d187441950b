"""Which life of the database this is.

A restore from a backup takes the server back behind what agents were told is durable. The count
of starts stands in the database and in a file beside it: a database that has seen fewer starts
than the file was put back, gets a new incarnation, and agents send again what they still hold.
"""

from __future__ import annotations

import os
from pathlib import Path

from ctxhealth.store.clock import now_ms
from ctxhealth.store.ids import uuid7
from ctxhealth.store.models import Command, ServerInfo
from ctxhealth.store.models.actions import OPEN_STATES
from ctxhealth.store.through import call

FILE = "starts"


def server_info() -> ServerInfo:
    """The one row, made where a database has none yet."""
    now = now_ms()
    defaults = {"incarnation": uuid7(now), "created_at": now}
    return ServerInfo.objects.get_or_create(id=1, defaults=defaults)[0]


def current() -> str:
    return server_info().incarnation


def settle(folder: Path) -> bool:
    """Count a start. True where the database was rewound and began a new incarnation."""
    path = folder / FILE
    rewound = call(_settle, _read(path))
    _write(path, server_info().boots)
    return rewound


def begin_anew() -> str:
    """A new incarnation; commands of the old one end as unknown and are never sent again."""
    return call(_begin_anew)


def _settle(seen: int) -> bool:
    info = server_info()
    rewound = info.boots < seen
    if rewound:
        _begin_anew()
        info.refresh_from_db()
    info.boots = max(info.boots, seen) + 1
    info.save(update_fields=["boots"])
    return rewound


def _begin_anew() -> str:
    info, now = server_info(), now_ms()
    info.incarnation = uuid7(now)
    info.save(update_fields=["incarnation"])
    Command.objects.filter(state__in=OPEN_STATES).update(
        state="unknown", state_reason="the database was restored", open=False, ended_at=now
    )
    return info.incarnation


def _read(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _write(path: Path, boots: int) -> None:
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="ascii") as file:
        file.write(f"{boots}\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
