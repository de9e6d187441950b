"""Any moment of a chat's log as a folded state: the nearest checkpoint, then the events after it.

The writer and the readers use the same functions, so a state that is shown is the state that a
rebuild gives.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ctxhealth.core.changes import Changes
from ctxhealth.core.fold import Stamp, fold
from ctxhealth.core.rules import Rules
from ctxhealth.core.state import FOLD_VERSION, ChatState, decode_state, new_state
from ctxhealth.store.models import Checkpoint, Event
from ctxhealth.wire import decode_stored

CHUNK = 2_000
_LOG = logging.getLogger(__name__)


class Replayed(NamedTuple):
    """``chat_seq`` of the last event folded in; ``folded`` events were replayed to get there."""

    state: ChatState
    chat_seq: int
    folded: int


class LogHole(RuntimeError):
    """The log misses a ``chat_seq``: nothing may be folded over it."""

    def __init__(self, chat: int, expected: int, found: int) -> None:
        super().__init__(f"chat {chat}: expected chat_seq {expected}, found {found}")
        self.chat, self.expected, self.found = chat, expected, found


def replay(
    *,
    chat: int,
    external_id: str,
    opened_at: int,
    rules: Rules,
    upto: int | None = None,
    checkpoints: bool = True,
    changes: Changes | None = None,
) -> Replayed:
    """The state after event ``upto`` (or the last one). Raises LogHole."""
    start = _checkpoint(chat, upto) if checkpoints else None
    state = start.state if start else new_state(external_id, opened_at)
    seq = start.chat_seq if start else 0
    return advance(state, chat=chat, after=seq, rules=rules, upto=upto, changes=changes)


def advance(
    state: ChatState,
    *,
    chat: int,
    after: int,
    rules: Rules,
    upto: int | None = None,
    changes: Changes | None = None,
) -> Replayed:
    """Fold the events after ``after`` into ``state``, in place."""
    seq = after
    for found, at, body in log_of(chat, after, upto):
        if found != seq + 1:
            raise LogHole(chat, seq + 1, found)
        seq = found
        step = Changes() if changes is None else changes
        fold(state, decode_stored(body), Stamp(seq, at), step, rules)
    return Replayed(state, seq, seq - after)


def _checkpoint(chat: int, upto: int | None) -> Replayed | None:
    """The newest checkpoint at or before ``upto`` that this version of the fold wrote."""
    rows = Checkpoint.objects.filter(chat_id=chat, fold_version=FOLD_VERSION)
    if upto is not None:
        rows = rows.filter(chat_seq__lte=upto)
    row = rows.order_by("-chat_seq").values_list("chat_seq", "state").first()
    if row is None:
        return None
    try:
        return Replayed(decode_state(bytes(row[1])), row[0], 0)
    except msgspec.MsgspecError as error:
        # The log is the truth: what cannot be read of it in short is read in full.
        _LOG.warning("chat %s: the checkpoint at %s is passed over: %s", chat, row[0], error)
        return None


def log_of(chat: int, after: int, upto: int | None) -> Iterator[tuple[int, int, str]]:
    """(chat_seq, at, body) of the events after ``after``, in order, read in chunks."""
    while True:
        rows = Event.objects.filter(chat_id=chat, chat_seq__gt=after)
        if upto is not None:
            rows = rows.filter(chat_seq__lte=upto)
        chunk = list(rows.order_by("chat_seq").values_list("chat_seq", "at", "body")[:CHUNK])
        yield from ((seq or 0, at, body) for seq, at, body in chunk)
        if len(chunk) < CHUNK:
            return
        after = chunk[-1][0] or after
