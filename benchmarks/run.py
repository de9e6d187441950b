"""Every benchmark by one command: a table of ratios, and JSON beside it.

    python -m benchmarks.run [NAME ...] [--json FILE]

A benchmark is a module of this folder with ``run() -> list[Row]``; one whose room is not built is
named and left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, table

HERE = Path(__file__).parent
NOT_BENCHMARKS = {"__init__", "run", "rows", "load", "ingest_floor", "ingest_naive"}


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_BENCHMARKS)


def measure(name: str) -> list[Row] | None:
    """The rows of one benchmark; None where it has no ``run``."""
    module = importlib.import_module(f"benchmarks.{name}")
    run = getattr(module, "run", None)
    if run is None:
        return None
    rows: list[Row] = run()
    return rows


def machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *names()], help="all where none is named")
    parser.add_argument("--json", type=Path, default=HERE / "results" / "latest.json")
    asked = parser.parse_args(argv)
    found: dict[str, list[Row]] = {}
    for name in asked.names or names():
        rows = measure(name)
        if rows is None:
            print(f"{name}: has no run(); start it by itself")
            continue
        found[name] = rows
        print(f"\n{name}\n{table(rows)}", flush=True)
    asked.json.parent.mkdir(exist_ok=True)
    document = {
        "machine": machine(),
        "rows": {name: [row.as_dict() for row in rows] for name, rows in found.items()},
    }
    asked.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
