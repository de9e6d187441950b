"""What is known of one chat between its turns, and of the turn that runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from .blocks import blocks_of, is_memory, is_request, message_id, parts_of
from .keys import Key

if TYPE_CHECKING:
    from ctxhealth.client import Chat
    from ctxhealth.engine import Episode, Latch

    from .jobs import Job

_PAIRS = 20
_LEAST_PAIRS = 3


@dataclass
class Turn:
    """One run of the agent. ``agent`` is built for it and thrown away after it."""

    id: str
    agent: Any
    workspace: Any
    topic: str | None = None
    shown: bool = False
    outcome: str | None = None
    durability_told: bool = False


@dataclass
class Watch:
    """One chat. Touched by QwenPaw's loop, except ``jobs`` and ``changed``."""

    key: Key
    chat: Chat
    turn: Turn | None = None
    opened: bool = False
    title: str | None = None
    empties: int = 0
    last_usage: dict[str, Any] | None = None
    episode: Episode | None = None
    latch: Latch | None = None
    latch_id: str | None = None
    system: int | None = None
    tools: int | None = None
    prompt_mark: tuple[int, int] | None = None
    counted: tuple[Any, int] | None = None
    pairs: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_PAIRS))
    jobs: list[Job] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _seen: dict[str, int] = field(default_factory=dict)

    # -- messages

    def learn(self, context: Iterable[Any]) -> None:
        """Take a context as reported: it came from a saved session, or stands in a snapshot."""
        self._seen = {message_id(message): len(blocks_of(message)) for message in context}

    def sync(self, context: list[Any]) -> None:
        """Report what was added since; only what is new is looked at."""
        start = len(context)
        while start > 0 and not self._known(context[start - 1]):
            start -= 1
        for message in context[start:]:
            self._report(message)

    def _known(self, message: Any) -> bool:
        return self._seen.get(message_id(message)) == len(blocks_of(message))

    def _report(self, message: Any) -> None:
        name = message_id(message)
        before = self._seen.get(name, 0)
        self._seen[name] = len(blocks_of(message))
        if is_memory(message):
            return
        turn = self.turn
        if turn is not None and is_request(message):
            turn.topic = name
        for part in parts_of(message, before):
            self.chat.message_added(
                part.id, part.role, part.kind, tokens=part.tokens, text=part.text,
                calls=part.calls, answers=part.answers, name=part.name,
                turn=turn.id if turn else None, topic=turn.topic if turn else None,
            )  # fmt: skip

    # -- counts

    def remember(self, context: list[Any], tokens: int) -> None:
        """The agent's own count of this very context with its prompt."""
        self.counted = (_signature(context), tokens)

    def known_count(self, context: list[Any]) -> int | None:
        """That count, while the context has not changed."""
        counted = self.counted
        return counted[1] if counted and counted[0] == _signature(context) else None

    def calibrate(self, local: int | None, billed: int | None) -> None:
        if local and billed:
            self.pairs.append((local, billed))

    @property
    def calibration(self) -> float | None:
        """Local count / provider count, the median of the last pairs; None until there are 3."""
        if len(self.pairs) < _LEAST_PAIRS:
            return None
        return median(local / billed for local, billed in self.pairs)

    # -- jobs of operators, from other threads

    def offer(self, job: Job) -> None:
        with self.lock:
            self.jobs.append(job)

    def withdraw(self, job: Job) -> None:
        with self.lock:
            if job in self.jobs:
                self.jobs.remove(job)

    def take(self) -> list[Job]:
        if not self.jobs:
            return []
        with self.lock:
            taken, self.jobs = self.jobs, []
        for job in taken:
            job.claimed = True
        return taken


def _signature(context: list[Any]) -> tuple[Any, ...]:
    if not context:
        return (0,)
    last = context[-1]
    return len(context), message_id(context[0]), message_id(last), len(blocks_of(last))
