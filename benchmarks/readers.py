"""Reading session files: time and memory for a generated Claude Code session.

    python benchmarks/readers.py [--mb 100] [--json FILE]

Prints MB/s, lines/s and events/s of the reader alone (no server), and the peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ctxhealth.cli.followed import FollowedFile
from ctxhealth.readers.claude_code import ClaudeCodeReader

_SESSION = "00000000-0000-4000-8000-000000000001"
_START_MS = 1_790_000_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=100)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="write the session here and read nothing")
    options = parser.parse_args()
    if options.keep is not None:
        write_session(options.keep, int(options.mb * 1e6))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        write_session(path, int(options.mb * 1e6))
        found = measure(path)
    print("\n".join(f"{name:>12} {value:,}" for name, value in found.items()))
    if options.json is not None:
        options.json.write_text(json.dumps(found))


def measure(path: Path) -> dict[str, float]:
    file = FollowedFile(str(path), lambda path, first: ClaudeCodeReader(Path(path).stem))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, events, more, snapshots = time.perf_counter(), 0, True, 0.0
    while more:
        piece, more = file.read()
        events += len(piece)
        at = time.perf_counter()
        file.place()
        snapshots += time.perf_counter() - at
    events += len(file.finish())
    seconds = time.perf_counter() - started
    assert file.reader is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "MB": round(path.stat().st_size / 1e6, 1),
        "seconds": round(seconds, 2),
        "of places": round(snapshots, 2),
        "MB/s": round(path.stat().st_size / 1e6 / seconds, 1),
        "lines/s": round(file.reader.counts["lines"] / seconds),
        "events/s": round(events / seconds),
        "events": events,
        "requests": file.reader.counts["request.sent"],
        "compactions": file.reader.counts["compaction.finished"],
        "peak MiB": round(peak / 1024, 1),
        "grown MiB": round((peak - before) / 1024, 1),
    }


def write_session(path: Path, size: int) -> None:
    """A session of turns with tool calls, a compaction every 60 requests, one 4 MB line."""
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows():
            line = json.dumps(row, separators=(",", ":")) + "\n"
            file.write(line)
            written += len(line)
            if written >= size:
                return


def rows() -> Iterator[dict[str, Any]]:
    number, load = 0, 20_000
    while True:
        turn = number
        yield _row(number, "user", message={"role": "user", "content": f"Do step {turn}. " * 20})
        for step in range(6):
            number += 1
            load = 30_000 if load > 165_000 else load + 2_400
            if load == 30_000:
                yield _row(
                    number, "system", suffix="b", subtype="compact_boundary",
                    compactMetadata={"trigger": "auto", "preTokens": 166_000, "durationMs": 9_000},
                )  # fmt: skip
                yield _row(
                    number, "user", suffix="s", isCompactSummary=True,
                    message={"role": "user", "content": "What was done so far. " * 400},
                )  # fmt: skip
            call = f"toolu_{number}"
            yield _reply(number, load, {"type": "text", "text": "Looking. " * 30}, "t")
            tool = {"type": "tool_use", "id": call, "name": "Read", "input": {"path": f"{step}"}}
            yield _reply(number, load, tool, "u")
            size = 4_000_000 if number == 600 else 7_000
            result = {
                "type": "tool_result",
                "tool_use_id": call,
                "content": "x = 1;\n" * (size // 7),
            }
            yield _row(
                number, "user", suffix="r", message={"role": "user", "content": [result]},
                toolUseResult={"stdout": "x = 1;\n" * 300},
            )  # fmt: skip
        number += 1
        load += 500
        yield _reply(number, load, {"type": "text", "text": "Done. " * 40}, "e", "end_turn")


def _reply(
    number: int, load: int, block: dict[str, Any], suffix: str, stop: str | None = None
) -> dict[str, Any]:
    usage = {
        "input_tokens": 8, "cache_creation_input_tokens": 2_400,
        "cache_read_input_tokens": load - 2_408, "output_tokens": 120,
    }  # fmt: skip
    message = {
        "id": f"msg_{number}", "model": "claude-sonnet-4-5-20250929", "role": "assistant",
        "content": [block], "stop_reason": stop, "usage": usage,
    }  # fmt: skip
    return _row(number, "assistant", suffix=suffix, message=message)


def _row(number: int, kind: str, suffix: str = "p", **more: Any) -> dict[str, Any]:
    stamp = time.gmtime((_START_MS + number * 5_000) / 1000)
    return {
        "type": kind, "uuid": f"{number:08x}-{ord(suffix):04x}-4000-8000-000000000000",
        "sessionId": _SESSION, "cwd": "/home/dev/demo", "version": "2.1.0",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", stamp), **more,
    }  # fmt: skip


if __name__ == "__main__":
    main()
