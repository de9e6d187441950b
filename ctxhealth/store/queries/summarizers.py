"""Summarizer health: what each utility model did for the whole fleet in the last hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

import msgspec

from ctxhealth.core.incidents_evidence import burn
from ctxhealth.core.incidents_parts import Burnt
from ctxhealth.core.model import AttemptView, Outcome
from ctxhealth.core.presence import ENDED
from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import Chat, CompactionAttempt

HOURS = 24
HOUR_MS = 3_600_000
# The newest attempts that are looked at; more than that in a day is said so.
MOST = 20_000
CHATS_NAMED = 5
_RUNNING = frozenset({Outcome.RUNNING})
_VIEW = msgspec.json.Decoder(AttemptView)


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingChat:
    id: int
    title: str


@dataclass(kw_only=True, slots=True)
class SummarizerRow:
    """One utility model of one provider; None and "" are what the agents do not tell.

    ``calls`` None: no agent told how many. ``burnt``: input tokens of attempts that failed or
    freed nothing, None where of none it is known; ``burnt_unknown`` calls add to it.
    ``failures`` by error class, ``waiting`` chats whose newest attempt by it failed.
    """

    model: str
    provider: str
    attempts: int = 0
    calls: int | None = None
    failed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    last_error: str = ""
    last_error_class: str = ""
    last_error_at: int | None = None
    last_error_chat: int | None = None
    median_ms: int | None = None
    burnt: int | None = 0
    burnt_unknown: int = 0
    waiting: list[WaitingChat] = field(default_factory=list)
    waiting_count: int = 0

    @property
    def by_class(self) -> list[tuple[str, int]]:
        """(error class, failures), the most frequent first."""
        return self.failures.most_common()

    @property
    def failing(self) -> bool:
        """Half of its attempts or more came to nothing, or a chat waits on it."""
        return self.waiting_count > 0 or (self.failed > 0 and 2 * self.failed >= self.attempts)


@dataclass(frozen=True, kw_only=True, slots=True)
class SummarizerHealth:
    """``since`` is where the oldest attempt that was looked at stands, server ms."""

    rows: list[SummarizerRow]
    since: int
    cut: bool


class _Tally:
    def __init__(self, model: str, provider: str) -> None:
        self.row = SummarizerRow(model=model, provider=provider)
        self.times: list[int] = []
        self.burnt = Burnt()
        self.newest_failed: dict[int, bool] = {}

    def add(self, chat: int, at: int, view: AttemptView) -> None:
        """Newest first."""
        row = self.row
        row.attempts += 1
        if view.summarizer is not None and view.summarizer.calls is not None:
            row.calls = (row.calls or 0) + view.summarizer.calls
        if view.ms is not None:
            self.times.append(view.ms)
        burn(self.burnt, view)
        failed = view.outcome is Outcome.SUMMARIZER_FAILED or view.error_class is not None
        self.newest_failed.setdefault(chat, failed)
        if failed:
            self._failed(chat, at, view)

    def _failed(self, chat: int, at: int, view: AttemptView) -> None:
        row = self.row
        row.failed += 1
        error = view.error_class or "no class"
        row.failures[error] += 1
        if row.last_error_at is None:
            row.last_error_at, row.last_error_chat, row.last_error_class = at, chat, error
            detail = view.summarizer.detail if view.summarizer is not None else None
            row.last_error = detail or view.reason or ""

    def finish(self) -> SummarizerRow:
        row, burnt = self.row, self.burnt
        row.median_ms = round(median(self.times)) if self.times else None
        row.burnt_unknown = burnt.calls
        row.burnt = None if burnt.calls and not burnt.known else burnt.tokens
        return row


def summarizer_health(*, now: int | None = None, hours: int = HOURS) -> SummarizerHealth:
    """Utility models by how many chats wait on them, then by failures, then by use."""
    moment = now_ms() if now is None else now
    since = moment - hours * HOUR_MS
    found = CompactionAttempt.objects.filter(at__gte=since, at__lte=moment).order_by("-at")
    rows = [
        (chat, at or 0, view)
        for chat, at, view in found.values_list("chat_id", "at", "view")[:MOST]
    ]
    tallies = _tallied(rows)
    _find_waiting(tallies)
    done = [tally.finish() for tally in tallies]
    done.sort(key=lambda row: (-row.waiting_count, -row.failed, -row.attempts, row.model))
    cut = len(rows) == MOST
    return SummarizerHealth(rows=done, since=rows[-1][1] if cut else since, cut=cut)


def _tallied(rows: Iterable[tuple[int, int, str]]) -> list[_Tally]:
    tallies: dict[tuple[str, str], _Tally] = {}
    for chat, at, text in rows:
        view = _VIEW.decode(text)
        used = view.summarizer
        if used is None or view.outcome in _RUNNING or not (used.model or used.calls):
            continue
        key = (used.model or "", used.provider or "")
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = _Tally(*key)
        tally.add(chat, at, view)
    return list(tallies.values())


def _find_waiting(tallies: list[_Tally]) -> None:
    """A chat waits while its newest attempt failed, it goes on and something is wrong with it."""
    wanted = {chat for tally in tallies for chat, failed in tally.newest_failed.items() if failed}
    chats = Chat.objects.filter(id__in=list(wanted)[:5_000], closed=False, severity_rank__lte=1)
    chats = chats.exclude(connection__in=[ended.value for ended in ENDED])
    named = {
        pk: title or external
        for pk, title, external in chats.values_list("id", "title", "external_id")
    }
    for tally in tallies:
        waiting = [chat for chat, failed in tally.newest_failed.items() if failed and chat in named]
        tally.row.waiting_count = len(waiting)
        tally.row.waiting = [
            WaitingChat(id=chat, title=named[chat]) for chat in waiting[:CHATS_NAMED]
        ]
