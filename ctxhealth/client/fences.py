"""What an operator's command expects to be still true, and what is known of a chat here."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .outbox import Statement

_FEW = 256
Fence = Callable[[str], Mapping[str, Any]]


@dataclass
class Track:
    """One chat, by the events it reported. ``latches``: id -> still set.

    ``compactions`` counts attempts ended in this epoch; ``confirmed`` those of this process that
    the server has acked.
    """

    compactions: int = 0
    ended: int = 0
    confirmed: int = 0
    latches: dict[str, bool] = field(default_factory=dict)
    requests: dict[str, None] = field(default_factory=dict)
    attempts: dict[str, None] = field(default_factory=dict)
    finished: dict[str, None] = field(default_factory=dict)
    cleared_by: dict[str, None] = field(default_factory=dict)

    def busy(self) -> str | None:
        """Why this is no safe point to change the history, or None."""
        if self.attempts:
            return "compaction"
        return "model_call" if self.requests else None


class Tracks:
    """All chats of one reporter. ``changed`` wakes those who wait for a safe point."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._tracks: dict[str, Track] = {}

    def of(self, chat: str) -> Track:
        track = self._tracks.get(chat)
        return track if track is not None else self._tracks.setdefault(chat, Track())

    def forget(self, chat: str) -> None:
        self._tracks.pop(chat, None)

    def observe(self, kind: str, chat: str, fields: Mapping[str, Any]) -> None:
        """Follow one event of this process, at the moment it is reported."""
        step = _STEPS.get(kind)
        if step is None:
            return
        with self.changed:
            step(self.of(chat), fields)
            self.changed.notify_all()

    def confirm(self, chat: str) -> None:
        """The server acked the end of a compaction."""
        with self.changed:
            self.of(chat).confirmed += 1

    def withdraw(self, chat: str) -> None:
        """The server never saw, or did not take, the end of a compaction."""
        with self.changed:
            track = self.of(chat)
            track.compactions = max(0, track.compactions - 1)
            track.ended -= 1

    def restore(self, rows: list[tuple[Any, ...]]) -> None:
        """Add what an earlier process with the same outbox left behind."""
        with self.changed:
            for chat, compactions, latches in rows:
                track = self.of(chat)
                track.compactions += compactions
                track.latches = {**json.loads(latches), **track.latches}

    def new_epoch(self) -> None:
        with self.changed:
            for track in self._tracks.values():
                track.compactions = 0

    def saved(self, chat: str) -> Statement:
        track = self.of(chat)
        return (
            "INSERT INTO fences(chat, compactions, latches) VALUES (?, ?, ?) ON CONFLICT(chat)"
            " DO UPDATE SET compactions = excluded.compactions, latches = excluded.latches",
            (chat, track.compactions, json.dumps(track.latches)),
        )


def mismatch(
    expected: Mapping[str, Any], epoch: str, track: Track, seen: int, own: Mapping[str, Any]
) -> str | None:
    """Why the fence does not hold, in words, or None. What is not expected is not compared.

    ``seen``: compactions of this process that the server had acked when the command came.
    ``own`` overrides: the host's ``epoch``, ``compaction`` or ``latch``.
    """
    wanted = expected.get("epoch")
    if wanted is not None and wanted != own.get("epoch", epoch):
        return f"the agent started anew: epoch {epoch}, expected {wanted}"
    return _compaction(expected, track, seen, own) or _latch(expected, track, own)


def _compaction(
    expected: Mapping[str, Any], track: Track, seen: int, own: Mapping[str, Any]
) -> str | None:
    wanted = expected.get("compaction")
    if wanted is None:
        return None
    actual = own.get("compaction", track.compactions)
    if actual == wanted:
        return None
    # Fewer here than there: this process remembers less, so what counts is whether a compaction
    # ended that the server had not heard of.
    if actual < wanted and "compaction" not in own and track.ended == seen:
        return None
    return f"compactions ended: {actual}, expected {wanted}"


def _latch(expected: Mapping[str, Any], track: Track, own: Mapping[str, Any]) -> str | None:
    wanted = expected.get("latch")
    if wanted is None:
        return None
    if "latch" in own:
        return None if own["latch"] == wanted else f"latch {own['latch']}, expected {wanted}"
    # A latch never reported here may be one the server inferred: the handler decides.
    return f"latch {wanted} is already cleared" if track.latches.get(wanted) is False else None


def _request_sent(track: Track, fields: Mapping[str, Any]) -> None:
    if fields.get("purpose", "chat") == "chat":
        _remember(track.requests, str(fields.get("request")))


def _request_ended(track: Track, fields: Mapping[str, Any]) -> None:
    track.requests.pop(str(fields.get("request")), None)


def _turn_changed(track: Track, fields: Mapping[str, Any]) -> None:
    # A turn that begins or ends leaves no call of an earlier one open.
    track.requests.clear()


def _attempt_started(track: Track, fields: Mapping[str, Any]) -> None:
    _remember(track.attempts, str(fields.get("attempt")))


def _attempt_ended(track: Track, fields: Mapping[str, Any]) -> None:
    attempt = str(fields.get("attempt"))
    begun = attempt in track.attempts
    track.attempts.pop(attempt, None)
    track.ended += 1
    # Told twice, it is still one attempt: so the server counts.
    if begun or attempt not in track.finished:
        track.compactions += 1
    _remember(track.finished, attempt)


def _latch_set(track: Track, fields: Mapping[str, Any]) -> None:
    track.latches.pop(str(fields.get("latch")), None)
    track.latches[str(fields.get("latch"))] = True
    if len(track.latches) > _FEW:
        del track.latches[next(iter(track.latches))]


def _latch_cleared(track: Track, fields: Mapping[str, Any]) -> None:
    track.latches[str(fields.get("latch"))] = False
    if fields.get("command"):
        _remember(track.cleared_by, str(fields["command"]))


def _remember(known: dict[str, None], name: str) -> None:
    known[name] = None
    if len(known) > _FEW:
        del known[next(iter(known))]


_STEPS: dict[str, Callable[[Track, Mapping[str, Any]], None]] = {
    "turn.started": _turn_changed,
    "turn.ended": _turn_changed,
    "request.sent": _request_sent,
    "model.replied": _request_ended,
    "model.failed": _request_ended,
    "compaction.started": _attempt_started,
    "compaction.finished": _attempt_ended,
    "latch.set": _latch_set,
    "latch.cleared": _latch_cleared,
}
