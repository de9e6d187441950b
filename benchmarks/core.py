"""What one event costs in the core: microseconds by type, and whether the chat's length matters.

    python benchmarks/core.py [--json FILE] [--long 1000000]

Decoding and storing are not part of it; findings are. Each type is timed alone inside a stream of
ordinary turns, healthy and in trouble; the medians are over single folds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter_ns, process_time_ns

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.rows import Row  # noqa: E402
from ctxhealth.core.changes import Changes  # noqa: E402
from ctxhealth.core.fold import Stamp, fold, new_state  # noqa: E402
from ctxhealth.core.rules import default_rules  # noqa: E402
from ctxhealth.core.state import ChatState, decode_state, encode_state  # noqa: E402
from ctxhealth.core.view import detail, summary  # noqa: E402
from ctxhealth.core.windows import WindowTable, packaged_table  # noqa: E402
from ctxhealth.wire import decode_event  # noqa: E402
from ctxhealth.wire.events import Event, ServerTick  # noqa: E402

RULES = default_rules()
# A name of each kind that agents use, known and unknown.
MODELS = (
    "claude-sonnet-4-5", "claude-fable-5[1m]", "claude-opus-4-5@20251101", "gpt-5-2025-08-07",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "openrouter/z-ai/glm-4.6:free",
    "GPT-5", "gpt-5-codex-high", "nobody/knows-this-2026-01-01",
)  # fmt: skip
BATCH = 50


def event(type: str, **fields: object) -> Event:
    raw = {"seq": 1, "ts": 1, "chat": "c", "type": type, **fields}
    return decode_event(json.dumps(raw).encode()).event


def turn(index: int, troubled: bool) -> Iterator[Event]:
    """About 20 events: a question, four calls with results, an answer; a compaction at times."""
    name = f"t{index}"
    load = 60_000 + index % 90 * 1_000
    if troubled:
        load += 100_000
    yield event("turn.started", turn=name)
    yield event("message.added", id=f"{name}u", role="user", kind="text", tokens=180, turn=name)
    if index % 30 == 29:
        yield event("compaction.started", attempt=name, trigger="proactive", before=load)
        yield event("latch.set", latch=name, scope="turn", kind="cooldown")
        yield event("latch.cleared", latch=name, how="time")
        yield event(
            "compaction.finished", attempt=name, reported="ok", before=load,
            after=load if troubled else load // 3,
            summarizer={"calls": 1, "input": load, "output": 0 if troubled else 800},
        )  # fmt: skip
    for step in range(4):
        request, call = f"{name}r{step}", f"{name}c{step}"
        load += 400
        yield event("request.sent", request=request, local=load)
        yield reply(request, load, tool_calls=1)
        yield event(
            "message.added", id=f"{call}a", role="assistant", kind="tool_call", tokens=60,
            calls=[call], name="read_file",
        )  # fmt: skip
        yield event(
            "message.added", id=f"{call}b", role="tool", kind="tool_result",
            tokens=300 + index % 211, answers=[call], name="read_file",
        )  # fmt: skip
    yield event("request.sent", request=f"{name}z", local=load)
    yield reply(f"{name}z", load, text_chars=400)
    yield event("message.added", id=f"{name}a", role="assistant", kind="text", tokens=120)
    yield ServerTick(seq=1, ts=1)
    yield event("turn.ended", turn=name, outcome="error" if troubled else "answered")


def reply(request: str, load: int, **content: int) -> Event:
    usage = {"dialect": "anthropic", "input": 9, "cache_read": load - 9, "output": 90}
    return event("model.replied", request=request, usage=usage, content=content, finish="stop")


def stream(troubled: bool) -> list[Event]:
    events = [
        event(
            "chat.opened", model="claude-sonnet-4-5", window=200_000, system=6_000, tools=9_000,
            trigger={"tokens": 150_000},
        )
    ]  # fmt: skip
    for index in range(90):
        events += turn(index, troubled)
    return events


def by_type(troubled: bool) -> dict[str, float]:
    """Median microseconds per event type; the table of models is read before."""
    RULES.lookup("claude-sonnet-4-5", None)
    events = stream(troubled)
    taken: dict[str, list[int]] = defaultdict(list)
    for _ in range(3):
        state = new_state("c", 0)
        changes = Changes()
        for index, entry in enumerate(events):
            if index % BATCH == 0:
                changes = Changes()
            stamp = Stamp(index + 1, index * 1_000)
            begun = perf_counter_ns()
            fold(state, entry, stamp, changes, RULES)
            taken[type(entry).__name__].append(perf_counter_ns() - begun)
        assert not [odd for odd in changes.oddities if "internal" in odd]
    every = [value for values in taken.values() for value in values]
    result = {name: median(values) / 1_000 for name, values in sorted(taken.items())}
    result["all: median"] = median(every) / 1_000
    result["all: mean"] = sum(every) / len(every) / 1_000
    return result


def long_chat(length: int) -> tuple[float, ChatState]:
    """Microseconds per event of CPU over the last 10,000 of ``length`` events of one chat."""
    events = stream(False)
    state, changes = new_state("c", 0), Changes()
    last = min(10_000, length)
    begun = 0
    for index in range(length):
        if index == length - last:
            begun = process_time_ns()
        if index % BATCH == 0:
            changes = Changes()
        fold(state, events[index % len(events)], Stamp(index + 1, index * 1_000), changes, RULES)
    return (process_time_ns() - begun) / last / 1_000, state


def each(name: str, runs: int, call: object) -> tuple[str, float]:
    assert callable(call)
    taken = []
    for _ in range(runs):
        begun = perf_counter_ns()
        call()
        taken.append(perf_counter_ns() - begun)
    return name, median(taken) / 1_000


def look_ups() -> dict[str, float]:
    """Microseconds to look a model up for the first time, and again."""
    first: list[float] = []
    again: list[float] = []
    for _ in range(100):
        table = WindowTable(packaged_table().models)
        for taken in (first, again):
            for name in MODELS:
                begun = perf_counter_ns()
                table.lookup(name, "openrouter")
                taken.append((perf_counter_ns() - begun) / 1_000)
    worst = max(median(first[index :: len(MODELS)]) for index in range(len(MODELS)))
    return {"model: first": median(first), "model: worst": worst, "model: again": median(again)}


def run() -> list[Row]:
    """What ``python -m benchmarks.run core`` shows; the long chat has 1,000,000 events."""
    rows = []
    for name, troubled in (("healthy", False), ("in trouble", True)):
        taken = by_type(troubled)
        rows.append(Row(name=f"fold with findings, {name}", value=taken["all: median"],
                        unit="us", target="<= 15", note="median over all events"))  # fmt: skip
        rows.append(Row(name=f"a reply, {name}", value=taken["ModelReplied"], unit="us"))
    short = min(long_chat(10_000)[0] for _ in range(3))
    long, old = long_chat(1_000_000)
    rows += [
        Row(name="a chat of 10,000 events", value=short, unit="us/event"),
        Row(name="a chat of 1,000,000 events", value=long, unit="us/event",
            of="a chat of 10,000 events", ratio=long / short, target="<= 1.1"),
        Row(name="its state", value=len(encode_state(old)), unit="bytes"),
    ]  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--long", type=int, default=1_000_000)
    options = parser.parse_args()
    healthy, troubled = by_type(False), by_type(True)
    short_us, state = long_chat(10_000)
    long_us, old = long_chat(options.long)
    views = dict(
        [
            each("summary", 500, lambda: summary(old, RULES)),
            each("detail", 500, lambda: detail(old, RULES, None)),
            each("encode_state", 500, lambda: encode_state(old)),
            each("decode_state", 500, lambda: decode_state(encode_state(old))),
        ]
    )
    views.update(look_ups())
    print(f"{'event':24}{'healthy us':>12}{'troubled us':>13}")
    for name in dict.fromkeys([*healthy, *troubled]):
        print(f"{name:24}{healthy.get(name, 0):12.1f}{troubled.get(name, 0):13.1f}")
    for name, value in views.items():
        print(f"{name:24}{value:12.1f}")
    size, old_size = len(encode_state(state)), len(encode_state(old))
    print(f"state bytes at 10,000 events {size:,}, at {options.long:,} {old_size:,}")
    print(f"us per event at 10,000: {short_us:.1f}, at {options.long:,}: {long_us:.1f}, "
          f"ratio {long_us / short_us:.2f}")  # fmt: skip
    if options.json:
        document = {
            "healthy_us": healthy, "troubled_us": troubled, "views_us": views,
            "us_at_10000": short_us, "us_at_long": long_us, "long": options.long,
            "ratio": long_us / short_us, "state_bytes": [size, old_size],
        }  # fmt: skip
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
