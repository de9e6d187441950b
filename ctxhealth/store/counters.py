"""Plain counters that the metrics page reads; one thread writes each of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WriterCounters:
    """Since the start of the process. ``seconds`` are wall time of whole transactions."""

    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    rejected: int = 0
    gaps_seen: int = 0
    replaced: int = 0
    calls: int = 0
    batches: int = 0
    seconds: float = 0.0
    largest_batch: int = 0
    retries: int = 0
    bisections: int = 0
    poisoned: int = 0
    checkpoints: int = 0
    wal_pages: int = 0
    refused_full: int = 0
    callback_errors: int = 0
