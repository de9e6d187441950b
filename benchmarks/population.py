"""A day of 500 healthy chats, 12,000 chat-hours: how many alarms, and what its fold costs.

    python -m benchmarks.run population

The chats are generated from real sessions' distributions (``tests/population``); the server's
ticks are part of it. Every alarm is printed. On 30 November 2026 the three seeds together, 1,500
chats and 3,111 sub-agents with 1,788,000 events and 3,255 compactions with relief, opened none.
"""

from __future__ import annotations

from time import process_time

from benchmarks.rows import Row
from ctxhealth.core.rules import default_rules
from tests.population.day import Folded, fold_day
from tests.population.generator import DAY_END, population

CHATS = 500
SEEDS = (20_261_130, 1, 2)


def one_day(seed: int) -> tuple[Folded, float]:
    """The day's findings, and the seconds of CPU that its fold took."""
    folded, rules, seconds = Folded(), default_rules(), 0.0
    for told in population(CHATS, seed):
        begun = process_time()
        fold_day(told, rules, DAY_END, folded)
        seconds += process_time() - begun
    return folded, seconds


def run() -> list[Row]:
    rows = []
    for seed in SEEDS:
        folded, seconds = one_day(seed)
        if folded.fired:
            print(folded.report())
        events = folded.events + folded.ticks
        note = (
            f"{folded.chats} chats, {folded.sub_agents} sub-agents, {events:,} events, "
            f"{folded.outcomes['reduced']:,} compactions with relief, seed {seed}"
        )
        critical, warnings = len(folded.of("critical")), len(folded.of("warning"))
        rows.append(Row(name="critical findings in a healthy day", value=critical, unit="",
                        target="0", note=note))  # fmt: skip
        rows.append(Row(name="warnings in a healthy day", value=warnings, unit="", target="<= 2"))
        rows.append(Row(name="fold and deadlines, mean", value=seconds / events * 1e6,
                        unit="us/event"))  # fmt: skip
    return rows
