"""The socket under a chat: connects once, breaks at times, and then everything comes at once."""

from __future__ import annotations

from random import Random

from ctxhealth.wire.events import ServerConnected, ServerDisconnected, TurnEnded, TurnStarted
from tests.population.teller import HOUR, SECOND, Teller, Timed

COMMANDS = ["compact_fallback", "clear_latch", "continue", "stop_turn", "snapshot", "ping"]
# Laptops sleep and servers restart: outages of a day, and their length. An agent that is away
# for long while somebody waits for it is no longer a healthy one.
OUTAGES = ((0, 0.7), (1, 0.2), (3, 0.1))
SHORT_S, LONG_S = (5, 20, 40), (90, 600, 1_800, 7_200)


def connected(teller: Teller, at: int, conn_no: int = 1) -> list[Timed]:
    event = ServerConnected(
        seq=1, ts=at, chat=teller.chat, conn_no=conn_no, read_only=teller.runtime.read_only,
        commands=[] if teller.runtime.read_only else COMMANDS, epoch="e1",
    )  # fmt: skip
    return [Timed(at, event)]


def with_outages(teller: Teller, events: list[Timed], random: Random) -> list[Timed]:
    """The outbox keeps what happens while the socket is down; it arrives after the reconnect."""
    number = random.choices([n for n, _ in OUTAGES], [share for _, share in OUTAGES])[0]
    first, last = events[0].at, min(events[-1].at, events[0].at + 23 * HOUR)
    begins = sorted(random.randint(first + SECOND, last + SECOND) for _ in range(number))
    conn_no = 1
    for begin in begins:
        lengths = SHORT_S if _working(events, begin) else LONG_S
        length = random.choice(lengths) * SECOND
        if not _quiet(events, begin, length):
            continue
        events = _broken(teller, events, begin, length, conn_no)
        conn_no += 1
    return events


def _working(events: list[Timed], at: int) -> bool:
    """Whether a turn is under way at ``at``."""
    turns = [e for e in events if e.at <= at and isinstance(e.event, TurnStarted | TurnEnded)]
    return bool(turns) and isinstance(turns[-1].event, TurnStarted)


def _quiet(events: list[Timed], begin: int, length: int) -> bool:
    """Whether the socket neither breaks nor comes back close to this outage."""
    near = (begin - 2 * HOUR, begin + length + SECOND)
    return not any(near[0] <= e.at <= near[1] for e in events if _is_link(e))


def _broken(
    teller: Teller, events: list[Timed], begin: int, length: int, conn_no: int
) -> list[Timed]:
    end = begin + length
    before = [entry for entry in events if entry.at < begin]
    during = [entry for entry in events if begin <= entry.at < end]
    after = [entry for entry in events if entry.at >= end]
    gone = ServerDisconnected(seq=1, ts=begin, chat=teller.chat, conn_no=conn_no, reason="network")
    back = connected(teller, end, conn_no + 1)
    late = [Timed(end + 1 + index // 100, entry.event) for index, entry in enumerate(during)]
    after = [Timed(max(entry.at, late[-1].at if late else end), entry.event) for entry in after]
    return [*before, Timed(begin, gone), *back, *late, *after]


def _is_link(entry: Timed) -> bool:
    return isinstance(entry.event, ServerConnected | ServerDisconnected)
