"""Ingest: events a second and the server's CPU per event, beside a floor and a naive consumer.

    python -m benchmarks.ingest [--json FILE] [--quick]

Each server runs alone over SQLite with synchronous=FULL, pinned to one CPU for throughput.
CPU time of the whole server process is what to trust; the rate depends on what else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.load import Conn, connect, frames, paced, send_all
from benchmarks.rows import Row, table

ROOT = Path(__file__).resolve().parent.parent
WINDOW = 256
CELLS = [(size, conns, 1) for size in (400, 2_000) for conns in (1, 8, 64)] + [(400, 8, 20)]
COUNTS = {"floor": 40_000, "product": 24_000, "naive": 2_000}
PATHS = {"floor": "/", "product": "/ws/agent/v1/", "naive": "/"}
IDLE = 1_000


@dataclass
class Target:
    """A server that runs, and how to reach it."""

    kind: str
    process: psutil.Process
    port: int
    token: str

    def cpu(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def connect(self, agent: str) -> socket.socket:
        return connect(self.port, PATHS[self.kind], self.token, agent)


def _pin(*cpus: int) -> None:
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, cpus)


@contextmanager
def serving(kind: str, pinned: bool = True) -> Iterator[Target]:
    """One server in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="ctxhealth-bench-") as folder:
        os.chmod(folder, 0o700)
        environment = {**os.environ, "CTXHEALTH_DATA_DIR": folder, "CTXHEALTH_NO_VENV": "1",
                       "DJANGO_SETTINGS_MODULE": "ctxhealth.settings",
                       "CTXHEALTH_LOG_LEVEL": "WARNING"}  # fmt: skip
        token = _token(environment) if kind == "product" else ""
        port = _free_port()
        command = {
            "floor": ["-m", "benchmarks.ingest_floor", str(port), f"{folder}/floor.sqlite3"],
            "naive": ["-m", "benchmarks.ingest_naive", str(port), f"{folder}/naive.sqlite3"],
            "product": ["manage.py", "serve", "--port", str(port)],
        }[kind]
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            preexec_fn=lambda: _pin(*((0,) if pinned else (0, 1))),
        )  # fmt: skip
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "ready" in line or "serves at" in line:
                    break
            yield Target(kind, psutil.Process(process.pid), port, token)
        finally:
            process.terminate()
            process.wait(30)


def _token(environment: dict[str, str]) -> str:
    wanted = json.dumps({"people": {}, "tokens": {"agents": ["ingest", "command"]}})
    done = subprocess.run(
        [sys.executable, "-m", "tests.browser.seed", wanted], cwd=ROOT, env=environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return str(json.loads(done.stdout.splitlines()[-1])["tokens"]["agents"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def throughput(kind: str, size: int, conns: int, per_frame: int, count: int) -> dict[str, float]:
    """Events a second and server CPU us per event in one cell."""
    each = count // conns
    made = frames(each, size, per_frame)
    with serving(kind) as target:
        links = [Conn(target.connect(f"agent-{number}"), made) for number in range(conns)]
        before = target.cpu()
        took = send_all(links, max(WINDOW, 2 * per_frame))
        used = target.cpu() - before
        for link in links:
            link.sock.close()
    total = each * conns
    return {"rate": total / took, "cpu": used / total * 1e6}


def latency(kind: str, rate: int, seconds: float) -> dict[str, float]:
    """Milliseconds from send to durable ack, one event a frame."""
    made = frames(int(rate * seconds) + 100, 400, 1)
    with serving(kind, pinned=False) as target:
        link = Conn(target.connect("paced"), made)
        paced(link, 200, 1)
        warm = len([1 for seq, _ in made if seq <= link.acked])
        link.frames, link.next = made[warm:], 0
        waits = sorted(paced(link, rate, seconds))
        link.sock.close()
    return {"p50": waits[len(waits) // 2] * 1e3, "p99": waits[int(len(waits) * 0.99)] * 1e3}


def idle(count: int) -> float:
    """KiB of server memory per idle connection."""
    with serving("product") as target:
        sockets = [target.connect(f"warm-{number}") for number in range(50)]
        before = target.process.memory_full_info().uss
        sockets += [target.connect(f"idle-{number}") for number in range(count)]
        after = target.process.memory_full_info().uss
        for link in sockets:
            link.close()
    return float((after - before) / count / 1024)


def run(quick: bool = False) -> list[Row]:
    """All cells; ``quick`` only the middle one."""
    _pin(1)
    rows: list[Row] = []
    for size, conns, per_frame in [(400, 8, 1)] if quick else CELLS:
        found = {
            kind: throughput(kind, size, conns, per_frame, count if conns < 64 else count * 2)
            for kind, count in COUNTS.items()
            if kind != "naive" or (size, per_frame) == (400, 1)
        }
        rows.extend(_rows(f"{size} B, {conns} agents, {per_frame}/frame", found))
    paces = {kind: latency(kind, 2_000, 5 if quick else 15) for kind in ("floor", "product")}
    rows.extend(
        Row(
            name=f"{kind}: ack {name} at 2,000/s",
            value=waits[name],
            unit="ms",
            of=f"floor's {name}",
            ratio=waits[name] / paces["floor"][name],
            target="<= 10" if (kind, name) == ("product", "p99") else "",
        )
        for kind, waits in paces.items()
        for name in ("p50", "p99")
    )
    rows.append(Row(name="idle agent connection", value=idle(200 if quick else IDLE), unit="KiB",
                    target="<= 40"))  # fmt: skip
    return rows


def _rows(cell: str, found: dict[str, dict[str, float]]) -> list[Row]:
    floor = found["floor"]
    rows = []
    for kind, numbers in found.items():
        rows.append(
            Row(name=f"{kind}: {cell}", value=numbers["cpu"], unit="us CPU/event",
                of="floor's CPU", ratio=floor["cpu"] / numbers["cpu"],
                target=">= 0.5" if kind == "product" else "",
                note=f"{numbers['rate']:,.0f} events/s")
        )  # fmt: skip
    return rows


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    asked: Any = parser.parse_args(argv)
    rows = run(asked.quick)
    print(table(rows))
    if asked.json:
        asked.json.write_text(json.dumps([row.as_dict() for row in rows], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
