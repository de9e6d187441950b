"""``Reporter``: one agent process's line to the server."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from .bodies import body, identifier
from .chat import Chat
from .commands import KINDS, Handler, Registered
from .connection import Hello
from .epochs import Names, now_ms
from .fences import Fence
from .outbox import Bounds
from .runtime import resign, take_over
from .station import Room, Station
from .texts import Redactor, TextPolicy
from .uplink import Target

log = logging.getLogger("ctxhealth.client")
SDK = "ctxhealth-python/0.1.0"
_MEMORY_REPLAY_BYTES = 8 * 1024 * 1024
_FILE_REPLAY_BYTES = 50 * 1024 * 1024
_EXIT_S = 1.5
_MAX_CHATS = 20_000
_MAX_TOLD = 100


class Reporter:
    """Reports what happens to the contexts of one agent's chats, and takes the operator's commands.

    Calls cost microseconds, never block on disk or network and never raise into the host;
    background threads do the rest. Only wrong arguments to this constructor raise (ValueError).
    A second Reporter for the same agent name in one process takes the first one's place.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        agent: str,
        runtime: str | None = None,
        runtime_version: str | None = None,
        outbox: str | os.PathLike[str] | None = None,
        text: str = "excerpt",
        max_events: int = 50_000,
        max_bytes: int = 32 * 1024 * 1024,
        replay_ms: int = 24 * 3600 * 1000,
        replay_bytes: int | None = None,
        queue_events: int = 20_000,
        queue_bytes: int = 16 * 1024 * 1024,
        capabilities: Mapping[str, Any] | None = None,
        redact: Redactor | None = None,
        on_replaced: str = "stop",
        start: bool = True,
    ) -> None:
        """
        ``url`` and ``token`` default to CTXHEALTH_URL and CTXHEALTH_TOKEN; without them events
        wait in the outbox. ``outbox``: a file's path keeps events and commands over restarts,
        None or ":memory:" does not. ``text``: none, excerpt (400 characters) or full; always
        redacted here, and by ``redact`` as well. ``max_events`` and ``max_bytes`` bound what
        waits for an ack, ``replay_*`` what is kept after it. ``capabilities`` overrides what is
        told: commands, fallback ("engine", "own", "none"), read_only. ``on_replaced``: "stop",
        or "reconnect" when another connection takes this agent's place.
        """
        if not agent:
            raise ValueError("agent: a name is needed")
        if on_replaced not in ("stop", "reconnect"):
            raise ValueError(f"on_replaced: {on_replaced!r} is not stop or reconnect")
        self.agent = identifier(agent)
        self.names = Names()
        self.texts = TextPolicy(text, redact)
        self._about = (runtime, runtime_version)
        self._capabilities = dict(capabilities or {})
        self._chats: dict[str, Chat] = {}
        self._chats_lock = threading.Lock()
        self._engine_chats: set[str | None] = set()
        self._heir: Reporter | None = None
        self._pid = os.getpid()
        self._told: set[str] = set()
        path = None if outbox in (None, ":memory:") else os.path.abspath(os.fspath(outbox))
        kept = replay_bytes or (_MEMORY_REPLAY_BYTES if path is None else _FILE_REPLAY_BYTES)
        room = Room(path, Bounds(max_events, max_bytes, replay_ms, kept), queue_events, queue_bytes)
        self._station = Station(
            room, self.texts, self._hello, Target.given(url, token), on_replaced
        )
        self._station.desk.after_success = self._complete
        self.generation, before = take_over(self.agent, self)
        if before is not None:
            before._heir = self
            self._station.before = before._station
        if start:
            self.start()

    # -- events

    def chat(self, id: str, *, ts: int | None = None, **facts: Any) -> Chat:
        """The handle of a chat; the first call reports ``chat.opened``, later ones what changed.

        Facts: title, model, provider, parent, window, max_input, max_output, reserve, trigger
        {tokens or ratio, inclusive, scope}, history_limit, bytes_limit, tokenizer, system, tools,
        utility {model, provider, window}, labels. Sizes in tokens.
        """
        if self._heir is not None:
            return self._heir.chat(id, ts=ts, **facts)
        name = identifier(id)
        with self._chats_lock:
            chat = self._chats.get(name)
            if chat is None:
                chat = self._chats[name] = Chat(self, name)
                if len(self._chats) > _MAX_CHATS:
                    del self._chats[next(iter(self._chats))]
                chat.opened(ts=ts, **facts)
                return chat
        changed = {key: value for key, value in facts.items() if _differs(chat.facts, key, value)}
        if changed:
            chat.updated(ts=ts, **changed)
        return chat

    def event(
        self, type: str, /, *, chat: str | None = None, ts: int | None = None, **fields: Any
    ) -> bool:
        """Report any event of the protocol by its type. None fields are left out (unknown).

        False where it was dropped (and will be said by a gap). Never raises.
        """
        return self.report(type, None if chat is None else identifier(chat), ts, fields)

    def report(self, type: str, chat: str | None, ts: int | None, fields: dict[str, Any]) -> bool:
        """``event`` with a chat id of at most 200 characters, and its fields as a dictionary."""
        try:
            return self._emit(type, chat, ts, fields)
        except Exception:
            self._tell_once(f"event {type} could not be made")
            return False

    def note(self, text: str, level: str = "info", **fields: Any) -> None:
        """Free text for the log, without a chat. ``level``: debug, info, warning, error."""
        self.event("note", text=text, level=level, **fields)

    def gap(self, count: int, reason: str, *, chat: str | None = None) -> None:
        """Say aloud that ``count`` events were left out, and why."""
        self.event("gap", chat=chat, count=count, reason=reason)

    def _emit(self, kind: str, chat: str | None, ts: int | None, fields: dict[str, Any]) -> bool:
        if self._heir is not None:
            return self._heir.report(kind, chat, ts, fields)
        if self._station.closed or os.getpid() != self._pid:
            self._tell_once("events after close, or in a forked process, are not reported")
            return False
        raw = body(kind, ts if isinstance(ts, int) else now_ms(), chat, fields, self.texts)
        tracks = self._station.journal.tracks
        if chat is not None:
            tracks.observe(kind, chat, fields)
        taken = self._station.journal.put(kind, chat, raw)
        if not taken and chat is not None and kind == "compaction.finished":
            tracks.withdraw(chat)
        return taken

    # -- commands

    def on(
        self,
        kind: str,
        handler: Handler | None = None,
        *,
        chat: str | None = None,
        safe_point: bool = False,
        manual_start: bool = False,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Any:
        """Register a handler for a command kind; also as ``@reporter.on("compact_fallback")``.

        It gets a CommandContext in a thread of its own (a coroutine function runs in ``loop``, or
        in a loop of its own) and returns a dictionary (before, after, backup, detail) or raises
        Refused or Failed. ``safe_point`` waits until no model call and no compaction of the chat
        is open; ``manual_start`` leaves ``context.start()`` to the handler. Raises ValueError for
        an unknown kind.
        """
        if kind not in KINDS:
            raise ValueError(f"kind: {kind!r} is not one of {', '.join(KINDS)}")

        def register(run: Handler) -> Handler:
            known = self._station.desk.kinds()
            self._station.desk.handlers[kind, chat] = Registered(
                run, safe_point, manual_start, loop
            )
            if self._station.desk.kinds() != known:
                self._station.uplink.introduce_again()
            return run

        return register if handler is None else register(handler)

    def use_engine(self, chat: Chat | str | None = None, **options: Any) -> None:
        """Let ctxhealth.engine carry out the deterministic commands; see ``fallback.serve``."""
        from .fallback import serve

        serve(self, chat.id if isinstance(chat, Chat) else chat, **options)

    def mark_engine(self, chat: str | None) -> None:
        """The fallback of ``chat`` (None: of all) is the engine's, so its preview is exact."""
        self._engine_chats.add(chat)

    def set_fence(self, fence: Fence | None) -> None:
        """``fence(chat)`` -> any of epoch, compaction, latch, where the host knows better."""
        self._station.desk.fence = fence

    def _complete(self, context: Any, fields: dict[str, Any]) -> None:
        from .receipts import complete

        complete(self, context, fields)

    # -- life

    def start(self) -> None:
        """Start the background threads; done by the constructor unless ``start=False``."""
        if not self._station.started and not self._station.closed:
            self._station.start()
            atexit.register(self._at_exit)

    def configure(self, url: str | None = None, token: str | None = None) -> None:
        """Another address or token, at once."""
        self._station.uplink.nudge(Target.given(url, token))

    def reconnect(self) -> None:
        """Try to connect now, also after another connection took this agent's place."""
        self._station.uplink.nudge()

    def wait_connected(self, timeout: float = 10.0) -> bool:
        """Block until the server said welcome."""
        return self._station.uplink.wait(timeout)

    def wait_below(self, events: int, timeout: float = 60.0) -> bool:
        """Block until fewer than ``events`` wait for an ack: for readers of files only."""
        return self._station.journal.below(events, timeout)

    def flush(self, timeout: float = 5.0) -> bool:
        """Block until everything reported so far is durable on the server; False if not in time."""
        if self._heir is not None:
            return self._heir.flush(timeout)
        return self._station.journal.settled(timeout)

    async def aflush(self, timeout: float = 5.0) -> bool:
        """``flush`` for a coroutine."""
        return await asyncio.get_running_loop().run_in_executor(None, self.flush, timeout)

    def close(self, timeout: float = 2.0) -> None:
        """Flush for at most ``timeout`` seconds, say bye, stop. Unsent events stay in a file."""
        if self._heir is not None or self._station.closed or os.getpid() != self._pid:
            return
        if self._station.worth_waiting():
            self.flush(timeout)
        self._station.stop("closed")
        resign(self.agent, self)
        atexit.unregister(self._at_exit)

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def connected(self) -> bool:
        return self._station.uplink.link is not None

    @property
    def epoch(self) -> str | None:
        """The stream's epoch; None until the outbox is open."""
        journal = self._station.journal
        return journal.outbox.epoch if journal.ready.is_set() else None

    def status(self) -> dict[str, Any]:
        """For people and tests: state, last_error, epoch, seqs, and counts of events."""
        return {**self._station.status(), "generation": self.generation}

    # -- inside

    def _hello(self) -> Hello:
        caps: dict[str, Any] = {
            "commands": self._station.desk.kinds(),
            "fallback": self._fallback_kind(),
            "text": self.texts.mode,
            **self._capabilities,
        }
        return Hello(self.agent, *self._about, SDK, caps)

    def _fallback_kind(self) -> str:
        handlers = self._station.desk.handlers
        chats = {chat for kind, chat in handlers if kind == "compact_fallback"}
        if not chats:
            return "none"
        return "engine" if chats <= self._engine_chats else "own"

    def _at_exit(self) -> None:
        with contextlib.suppress(Exception):
            self.close(_EXIT_S)

    def _tell_once(self, what: str) -> None:
        if what not in self._told and len(self._told) < _MAX_TOLD:
            self._told.add(what)
            log.warning("%s", what, exc_info=sys.exc_info()[0] is not None)


def _differs(facts: Mapping[str, Any], key: str, value: Any) -> bool:
    try:
        return bool(facts.get(key) != value)
    except Exception:
        # What cannot be compared (an array, say) is told again.
        return True
