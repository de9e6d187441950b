"""What /metrics says, in Prometheus' text format. No label ever names a chat or an agent.

``METRICS`` is the whole list; docs/operations.md is tested against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import ctxhealth
from ctxhealth.runtime import Runtime
from ctxhealth.store import queries

PREFIX = "ctxhealth_"


@dataclass(frozen=True)
class Number:
    """One number without labels. Counters only grow, from the start of the process."""

    name: str
    kind: str
    says: str
    read: Callable[[Runtime], float]

    def family(self, runtime: Runtime) -> Metric:
        family = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        return family(PREFIX + self.name, self.says, value=self.read(runtime))


def counter(name: str, says: str, read: Callable[[Runtime], float]) -> Number:
    return Number(name, "counter", says, read)


def gauge(name: str, says: str, read: Callable[[Runtime], float]) -> Number:
    return Number(name, "gauge", says, read)


METRICS: tuple[Number, ...] = (
    counter("events", "Agents' events stored.", lambda r: r.writer.counters.events),
    counter(
        "duplicate_events",
        "Events that came again and changed nothing.",
        lambda r: r.writer.counters.duplicates,
    ),
    counter(
        "conflicting_events",
        "Events that came again with other content; the first stays.",
        lambda r: r.writer.counters.conflicts,
    ),
    counter(
        "rejected_events",
        "Events that were refused for good and left a tombstone.",
        lambda r: r.writer.counters.rejected,
    ),
    counter(
        "poisoned_events",
        "Events that the store failed on, found by bisection.",
        lambda r: r.writer.counters.poisoned,
    ),
    counter("writer_batches", "Transactions of the writer.", lambda r: r.writer.counters.batches),
    counter(
        "writer_calls", "Writes of people and of the server.", lambda r: r.writer.counters.calls
    ),
    counter(
        "writer_seconds",
        "Seconds spent in the writer's transactions.",
        lambda r: r.writer.counters.seconds,
    ),
    counter(
        "writer_retries",
        "Transactions tried again: locked, full or away.",
        lambda r: r.writer.counters.retries,
    ),
    counter(
        "writer_refused",
        "Submissions refused because the queue was full.",
        lambda r: r.writer.counters.refused_full,
    ),
    gauge("writer_queued_events", "Events that wait for the writer.", lambda r: r.writer.queued[0]),
    gauge("writer_queued_bytes", "Bytes that wait for the writer.", lambda r: r.writer.queued[1]),
    gauge("writer_busy", "1 while the database takes nothing.", lambda r: bool(r.writer.busy)),
    gauge("states_cached", "Folded chats in memory.", lambda r: len(r.writer.states)),
    counter("states_hits", "Folded chats found in memory.", lambda r: r.writer.states.hits),
    counter("states_misses", "Folded chats read again.", lambda r: r.writer.states.misses),
    gauge("browsers", "Pages open on this process.", lambda r: r.live.browsers),
    counter("hints_sent", "Hints sent to open pages.", lambda r: r.live.hints.sent),
    counter("hints_failed", "Hints that the layer did not take.", lambda r: r.live.hints.failed),
    counter("fragments_rendered", "Fragments rendered.", lambda r: r.live.renderer.rendered),
    counter(
        "board_queries", "Queries of the board for open pages.", lambda r: r.live.board.queried
    ),
    counter("chat_loads", "Chats loaded for open pages.", lambda r: r.live.chats.loaded),
    counter("changes_skipped", "Changes the loop was too late for.", lambda r: r.live.skipped),
)
LABELLED = {
    "chats": "Chats by state.",
    "agents": "Agents by connection: connected or not.",
    "build_info": "Always 1; the version is in the label.",
}


class Numbers(Collector):
    """Reads the process when it is scraped; keeps nothing."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def collect(self) -> Iterator[Metric]:
        for number in METRICS:
            yield number.family(self.runtime)
        yield _labelled("build_info", "version", {ctxhealth.__version__: 1})
        yield _labelled("chats", "state", queries.board_page(limit=1).counts_by_state)
        yield _labelled("agents", "connected", _agents())


def exposition(runtime: Runtime) -> bytes:
    """The scrape's whole answer. Queries."""
    registry = CollectorRegistry()
    registry.register(Numbers(runtime))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


def _labelled(name: str, label: str, values: dict[str, Any]) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, LABELLED[name], labels=[label])
    for value, count in sorted(values.items()):
        family.add_metric([value], count)
    return family


def _agents() -> dict[str, int]:
    connected = [agent.connected for agent in queries.agents_list()]
    return {"yes": sum(connected), "no": len(connected) - sum(connected)}
