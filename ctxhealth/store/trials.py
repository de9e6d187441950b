"""What another threshold would have flagged in the last day, told before it is set.

The events of the last day are folded twice from the same checkpoint, by the rules in force and by
those with the threshold in place. Ticks that the other rules would have asked for are folded in
where they would have come, since the log has only those that the rules in force asked for.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from django.db import DatabaseError, connection

from ctxhealth.core.changes import Changes
from ctxhealth.core.deadlines import next_deadline
from ctxhealth.core.fold import Stamp, fold
from ctxhealth.core.rules import Rules
from ctxhealth.core.state import ChatState
from ctxhealth.core.tunable import BY_NAME
from ctxhealth.store.clock import now_ms
from ctxhealth.store.judging import rules_of
from ctxhealth.store.models import Chat, Event
from ctxhealth.store.replay import LogHole, log_of, replay
from ctxhealth.wire import decode_stored
from ctxhealth.wire.events import ServerTick

DAY_MS = 86_400_000
MOST_CHATS = 500
MOST_EVENTS = 400_000
EXAMPLES = 20
KEPT = 50
# Between two events no more deadlines than there are timers can pass.
TICKS = 10
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Example:
    """A finding that only one of the two sides opens; ``more``: the threshold tried does."""

    chat: int
    title: str
    code: str
    at: int
    more: bool


@dataclass(slots=True)
class Trial:
    """``now`` and ``then`` count findings opened in the last day, by the rules in force and by
    the threshold tried. ``state``: running, done, failed."""

    id: str
    name: str
    shown: float
    state: str = "running"
    chats: int = 0
    done: int = 0
    left_out: int = 0
    events: int = 0
    now: int = 0
    then: int = 0
    examples: list[Example] = field(default_factory=list)


class Trials:
    """One at a time, the newest ``KEPT`` remembered; they are gone with the server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Trial] = OrderedDict()
        self._pool = ThreadPoolExecutor(1, "ctxhealth-trial")

    def start(self, name: str, shown: float) -> Trial:
        """Begin one. Raises ValueError naming the threshold and why it cannot be so."""
        tunable = BY_NAME.get(name)
        if tunable is None:
            raise ValueError(f"name: no threshold is called {name[:60]!r}")
        value = tunable.stored(shown)
        trial = Trial(uuid.uuid4().hex, name, shown)
        with self._lock:
            self._known[trial.id] = trial
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._pool.submit(_run, trial, value)
        return trial

    def get(self, id: str) -> Trial | None:
        return self._known.get(id)


TRIALS = Trials()


def _run(trial: Trial, value: float) -> None:
    try:
        compare(trial, value, now_ms() - DAY_MS)
        trial.state = "done"
    except DatabaseError as error:
        _LOG.warning("a trial ended: %s", str(error)[:200])
        trial.state = "failed"
    except Exception:
        _LOG.exception("a trial failed")
        trial.state = "failed"
    finally:
        connection.close()


def compare(trial: Trial, value: float, since: int) -> None:
    """Fill ``trial`` from the chats that had events after ``since`` (ms)."""
    chats = Chat.objects.filter(last_event_at__gte=since).order_by("-last_event_at")
    trial.chats = min(MOST_CHATS, total := chats.count())
    for chat in chats[:MOST_CHATS]:
        if trial.events >= MOST_EVENTS:
            break
        _compare_chat(trial, chat, value, since)
        trial.done += 1
    trial.left_out = total - trial.done


def _compare_chat(trial: Trial, chat: Chat, value: float, since: int) -> None:
    rules = rules_of(chat.project_id, chat.agent_id)
    other = replace(rules, thresholds=replace(rules.thresholds, **{trial.name: value}))  # type: ignore[arg-type]
    codes = frozenset(BY_NAME[trial.name].codes)
    try:
        now = dict(_opened(chat, rules, codes, since, trial))
        then = dict(_opened(chat, other, codes, since, trial))
    except LogHole:
        return
    trial.now += len(now)
    trial.then += len(then)
    for key, at in sorted({**now, **then}.items(), key=lambda entry: entry[1]):
        if (key in now) != (key in then) and len(trial.examples) < EXAMPLES:
            title = chat.title or chat.external_id
            trial.examples.append(Example(chat.pk, title, key[0], at, key in then))


Opened = tuple[tuple[str, int], int]


def _opened(
    chat: Chat, rules: Rules, codes: frozenset[str], since: int, trial: Trial
) -> Iterator[Opened]:
    """((code, nth opening), at) of the findings that open after ``since``."""
    state, seq = _before(chat, rules, since)
    counts: dict[str, int] = {}
    open_now = set(state.findings) & codes
    for at in _steps(chat, state, rules, seq, trial):
        before, open_now = open_now, set(state.findings) & codes
        for code in open_now - before if at >= since else ():
            counts[code] = counts.get(code, 0) + 1
            yield (code, counts[code]), at


def _steps(chat: Chat, state: ChatState, rules: Rules, after: int, trial: Trial) -> Iterator[int]:
    """Fold on, and stop after each event and each tick between them, with its time (ms)."""
    for seq, at, body in log_of(chat.pk, after, None):
        for _ in range(TICKS):
            due = next_deadline(state, rules)
            if due is None or due >= at:
                break
            tick = ServerTick(seq=seq, ts=due, chat=chat.external_id)
            fold(state, tick, Stamp(seq, due), Changes(), rules)
            yield due
        fold(state, decode_stored(body), Stamp(seq, at), Changes(), rules)
        trial.events += 1
        yield at


def _before(chat: Chat, rules: Rules, since: int) -> tuple[ChatState, int]:
    """The state as of the last checkpoint before the day began."""
    first = Event.objects.filter(chat=chat, at__gte=since).order_by("chat_seq")
    seq = first.values_list("chat_seq", flat=True).first() or 1
    found = replay(
        chat=chat.pk,
        external_id=chat.external_id,
        opened_at=chat.opened_at,
        rules=rules,
        upto=max(0, seq - 1),
    )
    return found.state, found.chat_seq
