"""Looks for what makes a server slow, deaf or unsafe, and says it in sentences."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.core.checks import WARNING, run_checks
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

SLOW_FSYNC_MS = 20.0
LITTLE_SPACE = 500 * 1024 * 1024
NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "afs", "ceph"}


@dataclass(frozen=True)
class Sign:
    """``good`` False is a fault; ``says`` is one sentence either way."""

    name: str
    good: bool
    says: str


def examine() -> Iterator[Sign]:
    """Every sign, faults of one never hiding the next."""
    for look in LOOKS:
        name = look.__name__.replace("_", " ").strip()
        try:
            yield from look()
        except Exception as error:
            yield Sign(name, False, f"cannot be told: {type(error).__name__}: {error}")


def _settings() -> Iterator[Sign]:
    faults = [message for message in run_checks() if message.level >= WARNING]
    for message in faults:
        yield Sign("settings", False, f"{message.id}: {message.msg}")
    if not faults:
        yield Sign("settings", True, "no check complains")


def _database() -> Iterator[Sign]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    yield Sign("database", True, f"{connection.display_name} answers")
    executor = MigrationExecutor(connection)
    behind = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    says = f"{behind} migrations are missing: start the server once, or run migrate"
    yield Sign("migrations", not behind, says if behind else "none is missing")


def _sqlite() -> Iterator[Sign]:
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        mode = cursor.execute("PRAGMA journal_mode").fetchone()[0]
        level = cursor.execute("PRAGMA synchronous").fetchone()[0]
    yield Sign("journal", mode == "wal", f"the journal mode is {mode}, it should be wal")
    says = "FULL" if level == 2 else f"{level}, an acknowledged event can be lost with the power"
    yield Sign("durability", level == 2, f"synchronous is {says}")


def _data_folder() -> Iterator[Sign]:
    folder = Path(settings.CTXHEALTH_DATA_DIR)
    free = shutil.disk_usage(folder).free
    yield Sign("disk", free > LITTLE_SPACE, f"{free // 2**20:,} MiB are free in the data folder")
    kind = file_system_of(folder)
    over_network = kind in NETWORK_FILE_SYSTEMS
    says = f"the data folder is on {kind or 'an unknown file system'}"
    if over_network:
        says += ", where SQLite's WAL does not work"
    yield Sign("file system", not over_network, says)


def _fsync() -> Iterator[Sign]:
    took = fsync_ms(Path(settings.CTXHEALTH_DATA_DIR))
    yield Sign("fsync", took < SLOW_FSYNC_MS, f"a write reaches the disk in {took:.1f} ms")


def _layer() -> Iterator[Sign]:
    layer = get_channel_layer()
    if layer is None:
        yield Sign("hints", False, "no channel layer is set up")
        return
    async_to_sync(layer.group_send)("live.doctor", {"type": "doctor.look"})
    yield Sign("hints", True, f"{type(layer).__name__} takes messages")


def file_system_of(path: Path) -> str | None:
    """The type of the mount that holds ``path``; None where the system does not say."""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    except OSError:
        return None
    real = path.resolve()
    mounts = {Path(fields[1]): fields[2] for line in lines if len(fields := line.split()) > 2}
    holding = [mount for mount in mounts if mount == real or mount in real.parents]
    return mounts[max(holding, key=lambda mount: len(mount.parts))] if holding else None


def fsync_ms(folder: Path, tries: int = 5) -> float:
    """The median time of a small write with fsync in this folder."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(tries):
            began = time.perf_counter()
            file.write(b"x" * 4_096)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return sorted(times)[tries // 2] * 1_000


LOOKS: tuple[Callable[[], Iterator[Sign]], ...] = (
    _settings,
    _database,
    _sqlite,
    _data_folder,
    _fsync,
    _layer,
)
