"""What is known of each chat between two hooks, and the reporter it is told to.

One ``Station`` per process. It hangs in ``sys.modules`` under a name of its own: the agent drops
and imports anew every module below ``usr.plugins`` whenever any plugin changes.
"""

from __future__ import annotations

import sys
import threading
import time
import types
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ctxhealth.client import Chat, Reporter
from ctxhealth.client.histories import snapshot_of

from . import host
from .facts import facts_of
from .mirror import Mirror, mirror

_RUNTIME = "_ctxhealth_agent_zero"
_MOST_BOOKS = 5_000
_OUTBOX_S = 60


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Book:
    """One agent's chat. ``held``: a reply of which the next hook says whether it is usable.

    ``request``: the chat call that is open. ``build``: what happened in the prompt build that is
    open. ``system``: tokens of the system prompt, by its text. ``latch``: the failed pass that
    the next prompt build still awaits, as it was reported. ``gained``: the last pass freed some.
    """

    chat: Chat
    turn: str | None = None
    held: dict[str, Any] | None = None
    last_reply: str | None = None
    tool: str | None = None
    request: str | None = None
    began: float = 0.0
    empty: int = 0
    build: Build | None = None
    system: int | None = None
    system_text: str = ""
    beside: int | None = None
    latch: str | None = None
    error: str | None = None
    stopped: bool = False
    shown: bool = False
    added: int = 0
    gained: bool = False

    def settle(self, unusable: str | None = None) -> None:
        """Report the reply that was held back."""
        held, self.held = self.held, None
        if held is not None:
            self.chat.message_added(**held, unusable=unusable)


@dataclass
class Build:
    """One prompt build: compression passes in it, and what was so before it."""

    passes: int = 0
    no_gain: int = 0
    over: bool = False
    task_ended: bool = False
    before: int | None = None
    rows: int = 0


@dataclass
class Station:
    """``swallowed``: exceptions of the plugin's own hooks, by hook: counted, never raised."""

    reporter: Reporter
    settings: Any = None
    books: dict[str, Book] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    swallowed: Counter[str] = field(default_factory=Counter)

    def book(self, agent: Any) -> Book:
        """The agent's book; the first look at it opens its chat."""
        name = host.chat_of(agent)
        book = self.books.get(name)
        if book is None:
            book = self._open(name, agent)
        return book

    def known(self, agent: Any) -> Book | None:
        return self.books.get(host.chat_of(agent))

    def tell_facts(self, agent: Any) -> None:
        """Report what changed of window, limit and models since they were last told."""
        self.reporter.chat(host.chat_of(agent), **facts_of(agent))

    def forget(self, context: str, reason: str) -> None:
        """The context is gone, with all its agents."""
        for name in [n for n in self.books if n == context or n.startswith(f"{context}/A")]:
            book = self.books.pop(name)
            book.settle()
            book.chat.closed(reason)

    def end_left_latches(self) -> None:
        """A failed pass lives in the process: what an earlier one left latched is told as over.

        Known once the outbox is open, so this waits for it: call it in a thread of its own.
        """
        self._journal.ready.wait(_OUTBOX_S)
        for name, book in list(self.books.items()):
            self._end_left(name, book)

    def _end_left(self, name: str, book: Book) -> None:
        held = dict(self._journal.tracks.of(name).latches)
        for latch, is_set in held.items():
            if is_set and latch != book.latch:
                book.chat.latch_cleared(latch, "restart")

    @property
    def _journal(self) -> Any:
        return self.reporter._station.journal

    def _open(self, name: str, agent: Any) -> Book:
        with self.lock:
            book = self.books.get(name)
            if book is None:
                chat = self.reporter.chat(name, **facts_of(agent))
                book = self.books[name] = Book(chat)
                if self._journal.ready.is_set():
                    self._end_left(name, book)
                if len(self.books) > _MOST_BOOKS:
                    del self.books[next(iter(self.books))]
        return book


def mirror_of(book: Book, agent: Any) -> Mirror:
    """The agent's history as the engine's, with the sizes beside it as far as they are known."""
    extras = None
    if book.beside is not None and book.system is not None:
        extras = max(0, book.beside - book.system)
    tools = None if host.has_responses() else 0
    return mirror(agent.history, system=book.system, tools=tools, extras=extras)


def show(book: Book, agent: Any, *, full: bool = True) -> None:
    """Report the history's structure; with every item in its order where ``full``."""
    made = mirror_of(book, agent)
    told = snapshot_of(made.history)
    if not full:
        del told["order"]
    else:
        book.shown = True
    book.chat.history_snapshot(made.history.revision[:16], **told)


def runtime() -> Any:
    """``station``: the live one or None. ``patches``, ``callback``: what must be undone."""
    found = sys.modules.get(_RUNTIME)
    if found is None:
        fresh = types.ModuleType(_RUNTIME, "What survives a reload of the plugin's modules.")
        fresh.__dict__.update(
            station=None,
            patches=[],
            callback=None,
            lock=threading.RLock(),
            generation=0,
            owner=None,
        )
        found = sys.modules.setdefault(_RUNTIME, fresh)
    return found


def station() -> Station | None:
    found: Station | None = runtime().station
    return found
