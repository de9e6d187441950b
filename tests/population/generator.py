"""A day of healthy chats: long work, ordinary compactions that help, and everyday mishaps.

Sizes, times and compaction points are drawn from ``distributions``; nothing here knows a
threshold of the product. The same seed gives the same day.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from tests.population import link
from tests.population.body import Chat
from tests.population.runtimes import RUNTIMES, Runtime
from tests.population.teller import HOUR, SECOND, Timed
from tests.population.turns import Day

# Monday 30 November 2026, 00:00 UTC.
MIDNIGHT = 1_796_083_200_000
DAY_END = MIDNIGHT + 24 * HOUR
# How people and programs use their agents: the longest pause between two turns, in seconds.
# By hand, by a queue, around the clock.
PACES = ((0.8, None), (0.16, 900.0), (0.04, 20.0))


class Told(NamedTuple):
    """One chat's whole day. ``parent`` is the chat that started a sub-agent."""

    chat: str
    runtime: str
    read_only: bool
    start: int
    events: list[Timed]
    parent: str | None = None


def population(chats: int, seed: int) -> Iterator[Told]:
    """One day of ``chats`` chats and, beside them, of their sub-agents'."""
    for index in range(chats):
        yield from _one(Random(seed * 1_000_003 + index), f"chat-{index}")


def _one(random: Random, name: str) -> Iterator[Told]:
    runtime = random.choices(RUNTIMES, [entry.share for entry in RUNTIMES])[0]
    _, longest = random.choices(PACES, [share for share, _ in PACES])[0]
    start = MIDNIGHT + random.randint(0, 2 * HOUR)
    chat = Chat(name, runtime, random, start)
    Day(chat, end=DAY_END, longest_pause=longest).live()
    yield _told(chat, runtime, random, start)
    for child in chat.children:
        yield _told(child, runtime, random, child.born)


def _told(chat: Chat, runtime: Runtime, random: Random, start: int) -> Told:
    events = link.connected(chat.teller, start - SECOND)
    events += chat.teller.told
    if not runtime.read_only:
        events = link.with_outages(chat.teller, events, random)
    return Told(
        chat.teller.chat, runtime.name, runtime.read_only, start - SECOND, events, chat.parent
    )
