"""``Reporter``: one agent process's line to the server."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from .bodies import body, identifier
from .chat import Chat
from .commands import KINDS, CommandDesk, Handler, Registered
from .connection import Hello, websocket_url
from .database import InUse
from .epochs import Names, now_ms
from .fences import Fence
from .journal import Journal
from .outbox import Bounds, Outbox
from .pump import Pump
from .runtime import resign, runtime, take_over
from .texts import Redactor, TextPolicy
from .uplink import Target, Uplink

log = logging.getLogger("ctxhealth.client")
SDK = "ctxhealth-python/0.1.0"
_MEMORY_REPLAY_BYTES = 8 * 1024 * 1024
_EXIT_S = 1.5
_MAX_CHATS = 20_000


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
        self._path = None if outbox in (None, ":memory:") else os.path.abspath(os.fspath(outbox))
        memory = _MEMORY_REPLAY_BYTES if self._path is None else 50 * 1024 * 1024
        self._bounds = Bounds(max_events, max_bytes, replay_ms, replay_bytes or memory)
        self._chats: dict[str, Chat] = {}
        self._chats_lock = threading.Lock()
        self._heir: Reporter | None = None
        self._closed = False
        self._pid = os.getpid()
        self._told: set[str] = set()
        self._journal = Journal(
            self._open_outbox, queue_events=queue_events, queue_bytes=queue_bytes
        )
        self._desk = CommandDesk(self._journal, self.texts)
        self._desk.after_success = self._complete
        self._engine_chats: set[str | None] = set()
        self._uplink = Uplink(
            self._journal, self._desk, self._hello, self._target(url, token), on_replaced
        )
        self._pump = Pump(self._journal, self._uplink, self._opened)
        self._threads: list[threading.Thread] = []
        self.generation, self._before = take_over(self.agent, self)
        if start:
            self.start()

    # -- events

    def chat(self, id: str, *, ts: int | None = None, **facts: Any) -> Chat:
        """The handle of a chat; the first call reports ``chat.opened``, later ones what changed.

        Facts: title, model, provider, parent, window, max_input, max_output, reserve, trigger
        {tokens or ratio, inclusive, scope}, history_limit, bytes_limit, tokenizer, system, tools,
        utility {model, provider, window}, labels. Sizes in tokens.
        """
        name = identifier(id)
        with self._chats_lock:
            chat = self._chats.get(name)
            if chat is None:
                chat = self._chats[name] = Chat(self, name)
                if len(self._chats) > _MAX_CHATS:
                    del self._chats[next(iter(self._chats))]
                chat.opened(ts=ts, **facts)
                return chat
        changed = {key: value for key, value in facts.items() if chat.facts.get(key) != value}
        if changed:
            chat.updated(ts=ts, **changed)
        return chat

    def event(
        self, type: str, /, *, chat: str | None = None, ts: int | None = None, **fields: Any
    ) -> bool:
        """Report any event of the protocol by its type. None fields are left out (unknown).

        False where it was dropped (and will be said by a gap). Never raises.
        """
        try:
            return self._emit(type, identifier(chat) if chat is not None else None, ts, fields)
        except Exception:
            self._tell_once(f"event {type} could not be made")
            return False

    def note(self, text: str, level: str = "info", **fields: Any) -> None:
        """Free text for the log, without a chat. ``level``: debug, info, warning, error."""
        self.event("note", text=text[:4_000], level=level, **fields)

    def gap(self, count: int, reason: str, *, chat: str | None = None) -> None:
        """Say aloud that ``count`` events were left out, and why."""
        self.event("gap", chat=chat, count=count, reason=reason)

    def _emit(self, kind: str, chat: str | None, ts: int | None, fields: dict[str, Any]) -> bool:
        if self._heir is not None:
            return self._heir.event(kind, chat=chat, ts=ts, **fields)
        if self._closed or os.getpid() != self._pid:
            self._tell_once("events after close, or in a forked process, are not reported")
            return False
        raw = body(kind, now_ms() if ts is None else ts, chat, fields, self.texts)
        tracks = self._journal.tracks
        if chat is not None:
            tracks.observe(kind, chat, fields)
        taken = self._journal.put(kind, chat, raw)
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
            known = self._desk.kinds()
            self._desk.handlers[kind, chat] = Registered(run, safe_point, manual_start, loop)
            if self._desk.kinds() != known:
                self._uplink.introduce_again()
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
        self._desk.fence = fence

    def _complete(self, context: Any, fields: dict[str, Any]) -> None:
        from .receipts import complete

        complete(self, context, fields)

    # -- life

    def start(self) -> None:
        """Start the background threads; done by the constructor unless ``start=False``."""
        if self._threads or self._closed:
            return
        for run in (self._pump.run, self._uplink.run):
            name = f"ctxhealth-{run.__self__.__class__.__name__.lower()}"  # type: ignore[attr-defined]
            self._threads.append(threading.Thread(target=run, name=name, daemon=True))
        for thread in self._threads:
            thread.start()
        atexit.register(self._at_exit)

    def configure(self, url: str | None = None, token: str | None = None) -> None:
        """Another address or token, at once."""
        self._uplink.nudge(self._target(url, token))

    def reconnect(self) -> None:
        """Try to connect now, also after another connection took this agent's place."""
        self._uplink.nudge()

    def wait_connected(self, timeout: float = 10.0) -> bool:
        """Block until the server said welcome."""
        return self._uplink.wait(timeout)

    def wait_below(self, events: int, timeout: float = 60.0) -> bool:
        """Block until fewer than ``events`` wait for an ack: for readers of files only."""
        return self._journal.below(events, timeout)

    def flush(self, timeout: float = 5.0) -> bool:
        """Block until everything reported so far is durable on the server; False if not in time."""
        return self._journal.settled(timeout)

    async def aflush(self, timeout: float = 5.0) -> bool:
        """``flush`` for a coroutine."""
        return await asyncio.get_running_loop().run_in_executor(None, self.flush, timeout)

    def close(self, timeout: float = 2.0) -> None:
        """Flush for at most ``timeout`` seconds, say bye, stop. Unsent events stay in a file."""
        if self._closed:
            return
        if self._uplink.link is not None:
            self.flush(timeout)
        self._stop("closed")
        resign(self.agent, self)
        with contextlib.suppress(Exception):
            atexit.unregister(self._at_exit)

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def connected(self) -> bool:
        return self._uplink.link is not None

    @property
    def epoch(self) -> str | None:
        """The stream's epoch; None until the outbox is open."""
        return self._journal.outbox.epoch if self._journal.ready.is_set() else None

    def status(self) -> dict[str, Any]:
        """For people and tests: state, last_error, epoch, seqs, and counts of events."""
        ready = self._journal.ready.is_set()
        outbox = self._journal.outbox
        return {
            "state": "closed" if self._closed else self._uplink.state,
            "url": self._uplink.target.url,
            "last_error": self._uplink.last_error,
            "outbox_error": self._pump.trouble,
            "epoch": outbox.epoch if ready else None,
            "next_seq": outbox.next_seq if ready else None,
            "acked": outbox.acked if ready else None,
            "queued": self._journal.queued,
            "unacked": outbox.unacked if ready else 0,
            "lost": self._journal.lost,
            "rejected": self._journal.rejected,
            "connections": self._uplink.connections,
            "generation": self.generation,
        }

    # -- inside

    def _hello(self) -> Hello:
        caps: dict[str, Any] = {
            "commands": self._desk.kinds(),
            "fallback": self._fallback_kind(),
            "text": self.texts.mode,
            **self._capabilities,
        }
        return Hello(self.agent, *self._about, SDK, caps)

    def _fallback_kind(self) -> str:
        chats = {chat for kind, chat in self._desk.handlers if kind == "compact_fallback"}
        if not chats:
            return "none"
        return "engine" if chats <= self._engine_chats else "own"

    def _target(self, url: str | None, token: str | None) -> Target:
        url = url or os.environ.get("CTXHEALTH_URL") or None
        token = token or os.environ.get("CTXHEALTH_TOKEN") or None
        if url is None or token is None:
            log.warning("no %s: events wait in the outbox", "url" if url is None else "token")
            return Target(url, token)
        try:
            websocket_url(url)
        except ValueError as error:
            log.error("%s: events wait in the outbox", error)
            return Target(None, token)
        return Target(url, token)

    def _opened(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            before._retire(self)
        self._journal.open()
        self._desk.recover()

    def _open_outbox(self) -> Outbox:
        try:
            outbox = Outbox(self._path, self._bounds)
        except InUse as error:
            log.error("%s: this process keeps its events in memory", error)
            return Outbox(None, self._bounds)
        if outbox.db.set_aside:
            log.error("an unreadable outbox was set aside as %s", outbox.db.set_aside)
        return outbox

    def _retire(self, heir: Reporter) -> None:
        """Another Reporter for this agent lives now: it gets our events, handles and commands."""
        self._heir = heir
        self._journal.bequeath(heir._journal)
        self._stop("replaced in this process")
        with contextlib.suppress(Exception):
            atexit.unregister(self._at_exit)

    def _stop(self, why: str) -> None:
        self._closed = True
        self._pump.stop()
        self._join(0, 3.0)
        self._uplink.stop(why)
        self._join(1, 3.0)
        if self._journal.ready.is_set() and self._heir is None:
            self._journal.outbox.close()

    def _join(self, index: int, timeout: float) -> None:
        if index < len(self._threads) and self._threads[index] is not threading.current_thread():
            self._threads[index].join(timeout)

    def _at_exit(self) -> None:
        started = time.monotonic()
        with contextlib.suppress(Exception):
            self.close(_EXIT_S)
        log.debug("closed in %.3f s", time.monotonic() - started)

    def _tell_once(self, what: str) -> None:
        if what not in self._told and len(self._told) < 100:
            self._told.add(what)
            log.warning("%s", what, exc_info=True)


def live(agent: str) -> Reporter | None:
    """The reporter of ``agent`` in this process, whoever made it."""
    found: Reporter | None = runtime().reporters.get(agent)
    return found
