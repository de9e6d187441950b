"""Token counts: which of them are readings, which repeat, which are the client's estimates."""

from __future__ import annotations

from typing import NamedTuple

from ctxhealth.readers.timeline import Part
from ctxhealth.readers.values import Row, count_at, dict_at

_FIELDS = (
    ("input", "input_tokens"), ("output", "output_tokens"), ("cache_read", "cached_input_tokens"),
    ("cache_write", "cache_write_input_tokens"), ("reasoning", "reasoning_output_tokens"),
    ("total", "total_tokens"),
)  # fmt: skip


class Count(NamedTuple):
    """``usage`` of a reply in the wire's words, or the client's own ``estimate``, or neither."""

    usage: Row | None = None
    estimate: int | None = None
    window: int | None = None


class Counts(Part):
    """``last`` is the newest ``token_count``, ``guess`` the newest estimate in it; ``records``:
    replies have usage rows of their own, and what ``token_count`` repeats of them is late."""

    kept = ("last", "guess", "records", "window")

    def __init__(self) -> None:
        self.last: list[int | None] = []
        self.guess: int | None = None
        self.records = False
        self.window: int | None = None

    def token_count(self, payload: Row) -> Count:
        """The running total is never a load: it only tells a repetition from another request."""
        info = dict_at(payload, "info")
        last, total = dict_at(info, "last_token_usage"), dict_at(info, "total_token_usage")
        window = self.new_window(info)
        told = [count_at(part, key) for part in (last, total) for _, key in _FIELDS]
        again, self.last = told == self.last, told
        if count_at(last, "input_tokens") == 0:
            # Nothing was sent to be counted: a total without parts is the client's guess.
            guess = count_at(last, "total_tokens") or None
            guess, self.guess = (None if guess == self.guess else guess), guess
            return Count(estimate=guess, window=window)
        usage = None if again or self.records else wire_usage(last)
        return Count(usage, window=window)

    def record(self, payload: Row) -> Row | None:
        """The usage row that newer versions write for every reply, summaries included."""
        self.records = True
        return wire_usage(dict_at(payload, "usage"))

    def compacted(self) -> None:
        """The same estimate again now speaks of another history."""
        self.guess = None

    def new_window(self, row: Row) -> int | None:
        """The window that the client goes by, where it changed."""
        window = count_at(row, "model_context_window")
        if not window or window == self.window:
            return None
        self.window = window
        return window


def wire_usage(usage: Row) -> Row | None:
    """None where every count is 0 or missing: no reading, never a load of 0."""
    if not count_at(usage, "input_tokens"):
        return None
    found = {name: count_at(usage, key) for name, key in _FIELDS}
    return {"dialect": "codex", **{k: v for k, v in found.items() if v is not None}}
