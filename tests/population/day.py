"""The day folded as the server folds it: with its ticks, and with every finding that opens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxhealth.core.changes import Changes
from ctxhealth.core.deadlines import next_deadline
from ctxhealth.core.findings.views import finding_view
from ctxhealth.core.fold import Stamp, fold, new_state
from ctxhealth.core.rules import Rules
from ctxhealth.core.state import ChatState
from ctxhealth.wire.events import Event, ServerTick
from tests.population.generator import Told

ALARMS = ("critical", "warning")
BATCH = 50


class Fired(NamedTuple):
    chat: str
    runtime: str
    severity: str
    code: str
    seq: int
    at: int
    sentence: str

    def __str__(self) -> str:
        return (
            f"{self.severity:8} {self.code:20} {self.runtime:18} {self.chat} "
            f"#{self.seq}: {self.sentence}"
        )


@dataclass
class Folded:
    """What a day came to: every alarm, and how much was looked at."""

    fired: list[Fired] = field(default_factory=list)
    infos: dict[str, int] = field(default_factory=dict)
    oddities: list[str] = field(default_factory=list)
    events: int = 0
    ticks: int = 0
    # Of finished compactions, by our own word.
    outcomes: Counter[str] = field(default_factory=Counter)
    chats: int = 0
    sub_agents: int = 0

    def of(self, severity: str) -> list[Fired]:
        return [entry for entry in self.fired if entry.severity == severity]

    def report(self) -> str:
        """What fired, by code, then one by one."""
        counts = Counter((entry.severity, entry.code) for entry in self.fired)
        lines = [f"{number:5} {severity} {code}" for (severity, code), number in counts.items()]
        return "\n".join([*lines, *map(str, self.fired[:200])])


class Watch:
    """Folds one chat; a finding is noted when it opens and when it becomes an alarm."""

    def __init__(self, told: Told, rules: Rules, into: Folded) -> None:
        self.told, self.rules, self.into = told, rules, into
        self.state: ChatState = new_state(told.chat, told.start)
        self.changes = Changes()
        self.seq = 0
        self.severities: dict[str, str] = {}

    def run(self, end: int) -> None:
        """Every event, every tick between them, and those up to ``end`` of the day."""
        for at, event in self.told.events:
            self._ticks_until(at)
            self._fold(event, at)
        self._ticks_until(end)
        self._note_oddities()
        self.into.events += len(self.told.events)
        self.into.outcomes.update(self.state.compactions.outcomes)

    def _ticks_until(self, at: int) -> None:
        while (due := next_deadline(self.state, self.rules)) is not None and due < at:
            self._fold(ServerTick(seq=1, ts=due), due)
            self.into.ticks += 1

    def _fold(self, event: Event, at: int) -> None:
        self.seq += 1
        if self.seq % BATCH == 0:
            self._note_oddities()
            self.changes = Changes()
        fold(self.state, event, Stamp(self.seq, at), self.changes, self.rules)
        if self.changes.touched or self.changes.findings_closed:
            self._look(at)

    def _look(self, at: int) -> None:
        now = {code: found.severity for code, found in self.state.findings.items()}
        for code, severity in now.items():
            if severity != self.severities.get(code):
                self._note(code, severity, at)
        self.severities = now
        self.changes.touched.clear()
        self.changes.findings_closed.clear()

    def _note(self, code: str, severity: str, at: int) -> None:
        if severity not in ALARMS:
            self.into.infos[code] = self.into.infos.get(code, 0) + 1
            return
        sentence = finding_view(self.state, code).sentence
        told = self.told
        self.into.fired.append(
            Fired(told.chat, told.runtime, severity, code, self.seq, at, sentence)
        )

    def _note_oddities(self) -> None:
        self.into.oddities += [f"{self.told.chat}: {odd}" for odd in self.changes.oddities]


def fold_day(told: Told, rules: Rules, end: int, into: Folded) -> None:
    """Fold one chat's day up to ``end`` (server ms) into the running result."""
    Watch(told, rules, into).run(end)
    if told.parent is None:
        into.chats += 1
    else:
        into.sub_agents += 1
