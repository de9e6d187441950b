"""What the agent SDK costs its host: time per call, threads, CPU and memory, and throughput.

    python benchmarks/sdk.py [--json FILE] [--calls N]

Three servers: none at all (connection refused), one that accepts and never answers, and one that
stores nothing and acks at once. The bound is the median of a call with the server down: 50 us.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from ctxhealth.client import Chat, Reporter

BOUND_US = 50.0
_PACES = (("paced", 0.001), ("burst", 0.0))
_TEXT = "The tool answered with a page of text about nothing in particular. " * 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--calls", type=int, default=3_000)
    options = parser.parse_args()
    results: dict[str, Any] = {
        name: _measure(name, url, options.calls)
        for name, url in (("down", _down), ("mute", _mute), ("acking", _acking))
    }
    results["floor"] = {"calls": _floor()}
    results["throughput"] = _throughput(max(20_000, options.calls))
    _compare(results)
    _table(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0 if results["typical_us"] < BOUND_US else 1


def _measure(name: str, server: Callable[[], Any], calls: int) -> dict[str, Any]:
    """Calls at the pace of a busy agent, then as fast as they go."""
    with server() as url, tempfile.TemporaryDirectory() as folder:
        reporter = Reporter(url, "ctxh_bench", agent=name, outbox=Path(folder) / "outbox")
        chat = reporter.chat("c", model="m", window=200_000)
        measured = {
            f"{what} ({pace})": _timed(call, calls, pause)
            for what, call in _calls(chat).items()
            for pace, pause in _PACES
        }
        status = reporter.status()
        reporter.close(0.5)
    return {"calls": measured, "lost": status["lost"], "state": status["state"]}


def _floor() -> dict[str, dict[str, float]]:
    """What no reporter can go below: one JSON encoding and one locked append, at the same pace."""
    queue: list[str] = []
    lock = threading.Lock()
    event = {"type": "request.sent", "ts": 1, "chat": "c", "request": "r", "local": 117_322}

    def call() -> None:
        raw = json.dumps(event)
        with lock:
            queue.append(raw)

    return {f"floor ({pace})": _timed(call, 1_500, pause) for pace, pause in _PACES}


def _calls(chat: Chat) -> dict[str, Callable[[], Any]]:
    usage = {"dialect": "openai", "input": 117_322, "output": 311, "cache_read": 90_112}
    content = {"text_chars": 900, "tool_calls": 1}
    return {
        "request_sent": lambda: chat.request_sent("r", local=117_322),
        "model_replied": lambda: chat.model_replied("r", usage=usage, content=content),
        "message_added, 4 kB of text": lambda: chat.message_added(
            "m", "tool", "tool_result", tokens=900, text=_TEXT, answers=["k"]
        ),
    }


def _timed(call: Callable[[], Any], count: int, pause: float) -> dict[str, float]:
    taken = []
    clock = time.perf_counter_ns
    for _ in range(count if not pause else min(count, 1_500)):
        start = clock()
        call()
        taken.append((clock() - start) / 1_000)
        if pause:
            time.sleep(pause)
    cuts = statistics.quantiles(taken, n=1_000)
    return {
        "median_us": round(cuts[499], 1),
        "p99_us": round(cuts[989], 1),
        "max_us": round(max(taken), 1),
    }


def _throughput(count: int) -> dict[str, float]:
    """Events a second from call to ack, and the CPU the whole process spends on one."""
    with _acking() as url, tempfile.TemporaryDirectory() as folder:
        reporter = Reporter(url, "ctxh_bench", agent="throughput", outbox=Path(folder) / "outbox")
        chat = reporter.chat("c", model="m", window=200_000)
        reporter.flush(10)
        started, cpu = time.perf_counter(), time.process_time()
        for number in range(count):
            if number % 1_000 == 0:
                reporter.wait_below(5_000)
            chat.request_sent("r", local=number)
        done = reporter.flush(60)
        taken, spent = time.perf_counter() - started, time.process_time() - cpu
        reporter.close(1.0)
    return {
        "events": count,
        "all_acked": float(done),
        "events_per_s": round(count / taken),
        "cpu_us_per_event": round(spent / count * 1e6, 1),
    }


@contextlib.contextmanager
def _down() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def _mute() -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextlib.contextmanager
def _acking() -> Iterator[str]:
    server = serve(_ack_all, "127.0.0.1", 0, compression=None)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()


def _ack_all(ws: ServerConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        hello = json.loads(ws.recv())
        ws.send(json.dumps({"type": "welcome", "protocol": 1, "acked": hello["acked"]}))
        for raw in ws:
            frame = json.loads(raw)
            if frame["type"] == "events":
                upto = frame["events"][-1]["seq"]
                ws.send(json.dumps({"type": "ack", "epoch": frame["epoch"], "upto": upto}))


def _compare(results: dict[str, Any]) -> None:
    """Each median beside the floor of its pace, and the typical call with the server down."""
    floor = results["floor"]["calls"]
    for server in ("down", "mute", "acking"):
        for what, row in results[server]["calls"].items():
            pace = what[what.rindex("(") :]
            row["ratio"] = round(row["median_us"] / floor[f"floor {pace}"]["median_us"], 1)
    medians = [row["median_us"] for row in results["down"]["calls"].values()]
    results["typical_us"] = round(statistics.median(medians), 1)


def _table(results: dict[str, Any]) -> None:
    print(f"{'server':8} {'call':42} {'median':>9} {'p99':>9} {'max':>10} {'x floor':>8}")
    for server in ("floor", "down", "mute", "acking"):
        for what, row in results[server]["calls"].items():
            numbers = f"{row['median_us']:>6} us {row['p99_us']:>6} us {row['max_us']:>7} us"
            print(f"{server:8} {what:42} {numbers} {row.get('ratio', 1.0):>8}")
    whole = results["throughput"]
    print(
        f"\n{whole['events']:,} events, call to ack: {whole['events_per_s']:,} a second,"
        f" {whole['cpu_us_per_event']} us of CPU each (client and a test server together)"
    )
    typical = results["typical_us"]
    print(f"a call with the server down, median: {typical} us (bound: {BOUND_US:.0f} us)")


if __name__ == "__main__":
    raise SystemExit(main())
