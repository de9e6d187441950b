"""The pages at size: the board with 10,000 chats, a chat with 100,000 events.

    python benchmarks/pages.py [--json FILE] [--chats N] [--events N]

Filled through the store's own writer, served by a real server, fetched as a signed-in operator;
the time is that of the whole request on this machine, the bound is the design's for the server.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.live import row, sign_in  # noqa: E402
from benchmarks.rows import Row, table  # noqa: E402
from tests.browser.server import Server  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "pages.json"
FETCHES = 15


def run(chats: int = 10_000, events: int = 100_000) -> list[Row]:
    """Fill a database of its own and measure."""
    with tempfile.TemporaryDirectory(prefix="ctxhealth-bench-") as folder:
        server = Server(Path(folder))
        server.answer = server.seed(links=2, tokens={"api": ["read"]})
        long_chat = fill(server, chats, events)
        server.start()
        try:
            return [
                *_board(server, chats),
                *_long_chat(server, long_chat, events),
                *_review(server, long_chat, events),
            ]
        finally:
            server.stop()


def _board(server: Server, chats: int) -> list[Row]:
    get = _as_operator(server)
    took, size = _median(lambda: get("/"))
    api, _ = _median(lambda: get("/api/v1/chats?limit=100"))
    title = f"board, 100 of {chats:,} chats"
    return [
        row(f"{title}: page", took, "ms", 100.0),
        row(f"{title}: bytes", size / 1_000, "kB", 150.0),
        row(f"{title}: API", api, "ms"),
    ]


def _long_chat(server: Server, chat: int, events: int) -> list[Row]:
    get = _bearer(server)
    first = _milliseconds(lambda: get(f"/api/v1/chats/{chat}"))
    whole, _ = _median(lambda: get(f"/api/v1/chats/{chat}"))
    at, _ = _median(lambda: get(f"/api/v1/chats/{chat}/at/{events // 2}"))
    log, _ = _median(lambda: get(f"/api/v1/chats/{chat}/events?after={events // 2}"))
    series, _ = _median(lambda: get(f"/api/v1/chats/{chat}/readings"))
    title = f"chat with {events:,} events"
    return [
        row(f"{title}: in full, first look", first, "ms", 200.0),
        row(f"{title}: in full", whole, "ms", 200.0),
        row(f"{title}: as of its middle", at, "ms", 200.0),
        row(f"{title}: a page of its log", log, "ms", 200.0),
        row(f"{title}: its load over time", series, "ms", 200.0),
    ]


def _review(server: Server, chat: int, events: int) -> list[Row]:
    """The whole chat as one review, and the scrubber dragged across it."""
    get = _as_operator(server)
    page, size = _median(lambda: get(f"/chats/{chat}/review/"))
    seqs = [1 + (n * 37_813) % events for n in range(FETCHES)]
    moments = [
        _milliseconds(lambda seq=seq: get(f"/chats/{chat}/review/moment/?at={seq}"))  # type: ignore[misc]
        for seq in seqs
    ]
    part, _ = _median(
        lambda: get(f"/chats/{chat}/review/?first={events // 2}&last={events // 2 + 400}")
    )
    listed, _ = _median(lambda: get("/incidents/?show=all"))
    title = f"review of {events:,} events"
    return [
        row(f"{title}: page of the whole chat", page, "ms", 200.0),
        row(f"{title}: its bytes", size / 1_000, "kB"),
        row(f"{title}: page of 400 of them", part, "ms", 200.0),
        row(f"{title}: any moment, median", statistics.median(moments), "ms", 200.0),
        row(f"{title}: any moment, slowest of {FETCHES}", max(moments), "ms", 200.0),
        row("list of incidents", listed, "ms", 200.0),
    ]


def _as_operator(server: Server) -> Callable[[str], bytes]:
    return _getter(server, {"Cookie": sign_in(server)})


def _bearer(server: Server) -> Callable[[str], bytes]:
    return _getter(server, {"Authorization": f"Bearer {server.answer['tokens']['api']}"})


def _getter(server: Server, headers: dict[str, str]) -> Callable[[str], bytes]:
    def get(path: str) -> bytes:
        request = urllib.request.Request(server.origin + path, headers=headers)
        with urllib.request.urlopen(request) as answer:
            found: bytes = answer.read()
        return found

    return get


def _median(fetch: Callable[[], bytes]) -> tuple[float, int]:
    """(milliseconds, bytes) of the median fetch, after two that warm up."""
    fetch()
    size = len(fetch())
    return statistics.median(_milliseconds(fetch) for _ in range(FETCHES)), size


def _milliseconds(fetch: Callable[[], bytes]) -> float:
    began = time.perf_counter()
    fetch()
    return 1_000 * (time.perf_counter() - began)


def fill(server: Server, chats: int, events: int) -> int:
    """In a process of its own, before the server opens the database; the long chat's number."""
    command = [sys.executable, "-m", "benchmarks.filling", str(chats), str(events)]
    environment = {**os.environ, "CTXHEALTH_DATA_DIR": str(server.folder)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return int(done.stdout.split()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--chats", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=100_000)
    options = parser.parse_args()
    rows = run(options.chats, options.events)
    print(table(rows))
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(json.dumps([found.as_dict() for found in rows], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
