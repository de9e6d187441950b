"""Runs pytest on SQLite over everything, then the database tests again on PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.run import postgres, tools
from tests.run.summary import Run, read_run, table


def main(args: list[str]) -> int:
    """`args` go to pytest: paths, -k, -x; the exit code is 0 where both runs passed.

    ``--agents`` runs the tests that install real agent products instead, once, on SQLite.
    """
    # By an exception, so that the PostgreSQL it started is stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tools.setup()
    with tempfile.TemporaryDirectory(prefix="ctxhealth-runs-") as folder:
        if "--agents" in args:
            rest = [arg for arg in args if arg != "--agents"]
            runs = [_pytest("real agents", ["-m", "agents", *rest], Path(folder), {})]
        else:
            runs = [_pytest("SQLite", ["-m", "not agents", *args], Path(folder), {})]
            if not _said_only(args):
                runs.append(_on_postgresql(args, Path(folder)))
    print(table(runs), flush=True)
    return 0 if all(run.succeeded for run in runs) else 1


def _said_only(args: list[str]) -> bool:
    """Listing tests or asking for help needs no second database."""
    return bool({"--collect-only", "--co", "--help", "-h", "--version", "--fixtures"} & set(args))


def _on_postgresql(args: list[str], folder: Path) -> Run:
    cluster = postgres.start_cluster()
    if cluster is None:
        run = Run("PostgreSQL", skipped=1)
        run.reasons["needs postgresql: the whole second run"] += 1
        return run
    try:
        environment = {"CTXHEALTH_TEST_DATABASE_URL": cluster.url()}
        return _pytest("PostgreSQL", ["-m", "db and not agents", *args], folder, environment)
    finally:
        cluster.stop()


def _pytest(name: str, args: list[str], folder: Path, environment: dict[str, str]) -> Run:
    report = folder / f"{name}.xml"
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *args]
    print(f"\nTests on {name}", flush=True)
    started = time.monotonic()
    code = subprocess.run(
        command, cwd=tools.ROOT, env={**os.environ, **environment}, check=False
    ).returncode
    return read_run(name, code, report, time.monotonic() - started)
