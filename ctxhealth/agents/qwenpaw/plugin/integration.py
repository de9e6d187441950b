"""One ctxhealth inside one QwenPaw: the chats it watches, and each phase of their turns."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .attempts import report_native
from .binding import MANAGER, Binding
from .blocks import blocks_of, field
from .care import Care
from .facts import facts_of, manager_of, prompt_sizes, records_of, unread_of
from .jobs import Job
from .keys import Key, key_of
from .latching import Latching
from .patches import Patches
from .settings import Settings
from .structure import Structure, snapshot_of, structure_of
from .tracing import Tracer
from .watch import Turn, Watch

if TYPE_CHECKING:
    from ctxhealth.client import Reporter

_MOST_WATCHES = 20_000
_MOST_WAITING = 64


class Integration:
    """Lives from the plugin's start to its stop. ``loop`` is QwenPaw's."""

    def __init__(
        self, settings: Settings, binding: Binding, reporter: Reporter, care: Care,
        loop: asyncio.AbstractEventLoop,
    ) -> None:  # fmt: skip
        self.settings, self.binding, self.reporter = settings, binding, reporter
        self.care, self.loop = care, loop
        self.stopped = False
        self.idle: dict[str, Job] = {}
        self._watches: dict[Key, Watch] = {}
        self._sessions: dict[tuple[str, str], Key] = {}
        self._managers: WeakKeyDictionary[Any, Watch] = WeakKeyDictionary()
        self._stores: WeakKeyDictionary[Any, Watch] = WeakKeyDictionary()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="ctxhealth-snapshot")
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.latching = Latching(settings.summary_latch)
        self.tracer = Tracer(care, Patches(), self.find, self.compacted, self.latching)
        self.tracer.store_failed = self._store_failed

    def start(self) -> None:
        lacking = [*self.binding.missing]
        lacking += self.tracer.install(self.binding.manager, self.binding.store, MANAGER)
        if lacking:
            names = ", ".join(sorted(set(lacking)))
            self.reporter.note(
                f"QwenPaw {self.binding.version or 'of unknown version'} lacks {names}: what rests "
                "on them is not reported or not supported",
                "warning",
            )

    def stop(self) -> None:
        """Undo everything; hooks that the host still holds do nothing from now on."""
        self.stopped = True
        self.tracer.remove()
        for job in [*self.idle.values(), *(j for w in self._watches.values() for j in w.take())]:
            job.fail(RuntimeError("the plugin was stopped"))
        self._worker.shutdown(wait=True)

    # -- chats

    def watch(self, key: Key) -> Watch:
        found = self._watches.get(key)
        if found is None:
            if len(self._watches) >= _MOST_WATCHES:
                self._watches.pop(next(iter(self._watches)))
            labels = {"channel": key.channel, "agent": key.agent}
            chat = self.reporter.chat(key.id, labels=labels)
            found = self._watches[key] = Watch(key, chat)
            self.care.run("latches of an earlier process", lambda: self.latching.forget(found))
        return found

    def known(self, id: str) -> Watch | None:
        """A chat by its id on the server; None where the id is none of QwenPaw's."""
        key = Key.parse(id)
        return None if key is None else self.watch(key)

    def watch_of(self, agent: Any) -> Watch | None:
        """The chat an agent was built for; None once the plugin is stopped."""
        given = getattr(agent, "_request_context", None)
        if self.stopped or not isinstance(given, dict) or not given.get("session_id"):
            return None
        manager = manager_of(agent)
        found = self._managers.get(manager) if manager is not None else None
        if found is not None:
            return found
        session, name = str(given["session_id"]), str(given.get("agent_id") or "default")
        key = self._sessions.get((session, name))
        return self.watch(key) if key is not None else None

    def find(self, manager: Any, agent: Any) -> Watch | None:
        """The chat of a manager; one that a slash command built is known by its session."""
        found = self._managers.get(manager)
        if found is None and not self.stopped:
            session = str(getattr(manager, "_session_id", "") or "")
            name = str(getattr(manager, "_agent_id", "") or "default")
            key = self._sessions.get((session, name))
            found = None if key is None else self.watch(key)
        return found

    def _store_failed(self, store: Any, said: str) -> None:
        watch = self._stores.get(store)
        if watch is None or (watch.turn is not None and watch.turn.durability_told):
            return
        if watch.turn is not None:
            watch.turn.durability_told = True
        watch.chat.note(f"The history store could not be written: {said}", "warning")

    # -- a turn

    def dispatched(self, ctx: Any) -> None:
        """A request arrived; commands of the chat run before any agent is built."""
        key = key_of(ctx)
        if key.session:
            if len(self._sessions) >= _MOST_WATCHES:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[key.session, key.agent] = key

    def built(self, ctx: Any) -> None:
        """The agent is there, its saved context loaded."""
        agent = ctx.agent
        watch = self.watch(key_of(ctx))
        self._bind(agent, watch)
        parent = self._parent(ctx)
        self.reporter.chat(watch.key.id, **self._facts(agent, watch), parent=parent)
        if not watch.opened:
            watch.opened = True
            watch.learn(agent.state.context)
            if agent.state.context:
                self.snapshot(watch, agent, manager_of(agent))
        job = self.idle.get(_token(ctx))
        if job is None or job.answers:
            self._begin(ctx, watch, _kind(ctx, parent) if job is None else "continuation")

    def _facts(self, agent: Any, watch: Watch) -> dict[str, Any]:
        facts = facts_of(agent)
        labels = {"channel": watch.key.channel, "agent": watch.key.agent}
        return {**facts, "labels": {**labels, **facts["labels"]}}

    def _bind(self, agent: Any, watch: Watch) -> None:
        manager = manager_of(agent)
        if manager is not None:
            self._managers[manager] = watch
            store = getattr(manager, "_history", None)
            if store is not None:
                self._stores[store] = watch

    def _parent(self, ctx: Any) -> str | None:
        root = str(getattr(ctx, "root_session_id", "") or "")
        name = str(getattr(ctx, "root_agent_id", "") or "default")
        if not root or root == ctx.session_id:
            return None
        key = self._sessions.get((root, name))
        return None if key is None else key.id

    def _begin(self, ctx: Any, watch: Watch, kind: str) -> None:
        turn = watch.chat.turn_started(kind=kind)
        watch.turn = Turn(turn, ctx.agent, getattr(ctx, "workspace", None))

    async def before(self, ctx: Any) -> Any:
        """Before the model is asked: an operator's work on an idle chat, in place of an answer."""
        job = self.idle.pop(_token(ctx), None)
        if job is None or ctx.agent is None:
            return None
        await job.execute(ctx.agent)
        if job.answers and not job.result.exception():
            if job.clears:
                ctx.input_msgs.clear()
            return None
        return job

    def ended(self, ctx: Any) -> None:
        watch = self._watches.get(key_of(ctx))
        if watch is None or ctx.agent is None:
            return
        turn = watch.turn
        if turn is None or turn.agent is not ctx.agent:
            self.snapshot(watch, ctx.agent, manager_of(ctx.agent), over=True)
            return
        watch.sync(ctx.agent.state.context)
        outcome, error = _outcome(ctx, turn)
        watch.turn = None
        watch.chat.turn_ended(turn.id, outcome, error)
        self.snapshot(watch, ctx.agent, manager_of(ctx.agent), over=True)
        self._later(self._retitle(watch, turn.workspace))

    # -- steps

    def step(self, agent: Any) -> Watch | None:
        watch = self.watch_of(agent)
        if watch is not None:
            watch.sync(agent.state.context)
        return watch

    def note_prompt(self, watch: Watch, kwargs: dict[str, Any]) -> None:
        """Sizes of the prompt's fixed part, measured again only when it changed."""
        messages, tools = kwargs.get("messages") or [], kwargs.get("tools")
        mark = (len(tools or ()), sum(len(str(field(b, "text") or "")) for b in _first(messages)))
        if watch.prompt_mark == mark:
            return
        watch.prompt_mark = mark
        dumped = json.dumps(tools, ensure_ascii=False) if tools else ""
        watch.system, watch.tools = prompt_sizes(messages, tools, dumped)

    def compacted(self, watch: Watch, agent: Any, manager: Any) -> None:
        """After an attempt that was reported: the structure as it is now."""
        self.snapshot(watch, agent, manager)

    def compacted_natively(
        self, watch: Watch, held: Structure, agent: Any, begun: float
    ) -> None:  # fmt: skip
        if report_native(watch, held, agent, begun):
            self.snapshot(watch, agent, None)

    def snapshot(self, watch: Watch, agent: Any, manager: Any, over: bool = False) -> None:
        """Reported by a thread of its own: the turn does not wait for it.

        ``over``: nothing changes this agent's messages any more, so they need not be read now.
        """
        context = list(agent.state.context)
        watch.learn(context)
        records = None if manager is None else records_of(manager)
        found: Structure | None = None if over else structure_of(context)
        if self._waiting >= _MOST_WAITING:
            self.reporter.gap(1, "snapshots came faster than they could be made")
            return
        self._waiting += 1
        self._worker.submit(self._write_up, watch, manager, context, found, records)

    def _write_up(
        self, watch: Watch, manager: Any, context: list[Any], found: Structure | None,
        records: int | None,
    ) -> None:  # fmt: skip
        try:
            found = found or structure_of(context)
            unread = unread_of(manager, context)
            fields = snapshot_of(
                found, records=records, system=watch.system, tools=watch.tools, unread=unread
            )
            watch.chat.history_snapshot(found.revision, **fields)
        except Exception as error:
            self.care.failed("snapshot", error)
        finally:
            self._waiting -= 1

    # -- titles

    def _later(self, work: Any) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _retitle(self, watch: Watch, workspace: Any) -> None:
        try:
            chats, key = workspace.chat_manager, watch.key
            found = await chats.get_chat_id_by_session(key.session, key.channel, key.user)
            spec = await chats.get_chat(found) if found else None
            title = getattr(spec, "name", None)
        except Exception as error:
            self.care.failed("title", error)
            return
        if isinstance(title, str) and title and title != watch.title:
            watch.title = title
            watch.chat.updated(title=title)


def _first(messages: list[Any]) -> list[Any]:
    return blocks_of(messages[0]) if messages else []


def _token(ctx: Any) -> str:
    """Of the job that a turn was started for; blank for a user's turn."""
    return str(getattr(getattr(ctx, "request", None), "ctxhealth_job", None) or "")


def _kind(ctx: Any, parent: str | None) -> str:
    """Nobody waits for what a timer or another agent began."""
    source = getattr(getattr(ctx, "request", None), "session_source", None)
    return "task" if source == "cron" or parent is not None else "user"


def _outcome(ctx: Any, turn: Turn) -> tuple[str, str | None]:
    error = getattr(ctx, "error", None)
    if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)):
        return "cancelled", None
    if error is not None:
        return "error", str(error) or type(error).__name__
    if turn.outcome is not None:
        return turn.outcome, None
    return ("answered" if turn.shown else "silent"), None
