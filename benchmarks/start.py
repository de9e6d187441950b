"""How long a start takes: `python3 benchmarks/start.py [--install] [--rounds N]`.

Measures `manage.py up` as a user starts it, from the command to the line that says it serves: the
first start on an empty data folder and further ones. With --install also the making of the
environment, in a copy of the checkout. Prints a table and writes benchmarks/results/start.json.
Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "start.json"
PARTS = ("manage.py", "requirements.txt", "ctxhealth", "templates", "static", "pyproject.toml")
SECOND_START_SECONDS = 3.0


def main() -> int:
    """Measure, print, write; the exit code is 1 where a second start takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="also make an environment")
    parser.add_argument("--rounds", type=int, default=5, help="second starts to measure")
    options = parser.parse_args()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="ctxhealth-start-") as folder:
        root = ROOT
        if options.install:
            root = copy_of_the_checkout(Path(folder))
            figures["install_s"] = install(root)
        data_dir = Path(folder) / "data"
        figures["first_start_s"] = start(root, data_dir)
        seconds = [start(root, data_dir) for _ in range(options.rounds)]
    figures["second_start_median_s"] = statistics.median(seconds)
    figures["second_start_worst_s"] = max(seconds)
    report(figures)
    return 0 if figures["second_start_worst_s"] < SECOND_START_SECONDS else 1


def copy_of_the_checkout(folder: Path) -> Path:
    """The files a start needs, without the environment that is there already."""
    root = folder / "checkout"
    root.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, root / part)
    return root


def install(root: Path) -> float:
    """Seconds to make the environment and install everything; pip's cache counts as it is."""
    begun = time.perf_counter()
    command = [base_python(), str(root / "manage.py"), "version"]
    subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def start(root: Path, data_dir: Path) -> float:
    """Seconds from the command until it says that it serves."""
    command = [base_python(), str(root / "manage.py"), "up", "--port", "0", "--no-open"]
    environment = {**os.environ, "CTXHEALTH_DATA_DIR": str(data_dir)}
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "serves at" in line:
            break
    else:
        raise SystemExit("The server ended before it served.")
    seconds = time.perf_counter() - begun
    process.send_signal(signal.SIGTERM)
    process.communicate()
    return seconds


def base_python() -> str:
    """The interpreter beneath an environment, as `python3` is for a user."""
    return str(getattr(sys, "_base_executable", sys.executable))


def report(figures: dict[str, float]) -> None:
    """The table for a reader, the file for a comparison."""
    for name, value in figures.items():
        print(f"{name:<24}{value:8.2f}")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
