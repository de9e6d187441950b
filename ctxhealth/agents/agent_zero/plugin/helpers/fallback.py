"""Fallback compaction, undo and repair of Agent Zero's own history; see safe_points.py for when."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ctxhealth.client import CommandContext, Failed, Refused
from ctxhealth.client.fallback import target_of
from ctxhealth.engine import KeepRules, Plan, plan_fallback, repair_pairs

from . import backups, host, latches, loops, remake
from .books import Book, Station, mirror_of, now_ms, show
from .mirror import Mirror, message_ids, signature
from .safe_points import Work, carry_out, change_at_rest

_HISTORY = "history"
#: A user may speak into a rescue: so often it begins again.
_RESCUES = 3


class Fallback:
    """One ``compact_fallback``: planned while the agent stands still, put in place on its loop."""

    def __init__(self, station: Station, command: CommandContext, context: Any, agent: Any) -> None:
        self.command, self.context, self.agent = command, context, agent
        self.book: Book = station.book(agent)
        self.target = _whole(command, "target", 0)
        self.rules = KeepRules(turns=_whole(command, "keep_turns", 1) or 1)
        self.backup: str | None = None
        self.mirror: Mirror | None = None
        self.plan: Plan | None = None
        self.attempt: str | None = None
        self.began = time.monotonic()

    def work(self) -> Work:
        return Work(self.prepare, self.change)

    def prepare(self) -> None:
        """Fence and ``started`` first; then end the background pass, plan, save the backup."""
        self.command.start()
        latches.end_background(self.book, self.agent, self.command.id)
        self._plan()
        if self.attempt is None:
            self._open()
        if self.plan is not None and self.plan.steps:
            self.backup = backups.save(self.agent, self.command.id, now_ms())

    def change(self) -> None:
        """Anew where a message came between; then the history is changed, in one piece."""
        if self.mirror is None or signature(self.agent.history) != self.mirror.signature:
            self._plan()
            if self.plan is not None and self.plan.steps:
                self.backup = backups.save(self.agent, self.command.id, now_ms())
        if self.plan is None or self.mirror is None or not self.plan.steps:
            return
        remake.apply(self.agent.history, self.mirror, self.plan)
        let_go(self.agent)
        save_chat(self.context)

    def report(self) -> dict[str, Any]:
        """What it came to, told and given back. Raises Failed where nothing could be done."""
        plan = self.plan
        if plan is None:
            raise Failed("the history could not be read")
        after = int(self.agent.history.get_tokens()) if plan.steps else plan.before
        self._finish(plan.outcome, plan.sentence, after)
        show(self.book, self.agent)
        if not plan.steps:
            raise Failed(plan.sentence)
        return {
            "before": plan.before,
            "after": after,
            "backup": self.backup,
            "reason": plan.sentence,
            "detail": {"target": plan.target, "scope": plan.scope, "outcome": plan.outcome},
        }

    def failed(self, error: BaseException) -> None:
        """Close the attempt that was opened."""
        if self.attempt is not None:
            self._finish("failed", f"{type(error).__name__}: {error}"[:400], None)

    def _plan(self) -> None:
        self.mirror = mirror_of(self.book, self.agent)
        history, target = self.mirror.history, self.target
        if target is None:
            try:
                target, _ = target_of(self.book.chat.facts, history, _HISTORY)
            except ValueError as error:
                raise Refused("unsupported", f"{error}; give a target") from error
        self.plan = plan_fallback(
            history, target=target, rules=self.rules, count=host.count_message
        )

    def _open(self) -> None:
        before = self.plan.before if self.plan is not None else None
        self.attempt = self.book.chat.compaction_started(
            self.command.id, "forced", before=before, scope=_HISTORY,
            input_hash=self.mirror.history.revision if self.mirror else None,
        )  # fmt: skip

    def _finish(self, outcome: str, reason: str, after: int | None) -> None:
        attempt, self.attempt = self.attempt, None
        plan = self.plan
        self.book.chat.compaction_finished(
            attempt or self.command.id,
            outcome,
            before=plan.before if plan else None,
            after=after,
            scope=_HISTORY,
            reason=reason,
            steps=_steps(plan) if plan and after is not None else None,
            removed=list(plan.folded) or None if plan and after is not None else None,
            lossy=plan.lossy if plan and after is not None else None,
            backup=self.backup,
            trigger="forced",
            ms=int((time.monotonic() - self.began) * 1000),
        )


def compact(station: Station, command: CommandContext, context: Any, agent: Any) -> dict[str, Any]:
    job = Fallback(station, command, context, agent)
    return finished(job, lambda: carry_out(command, context, agent, job.work()))


def finished(job: Fallback, act: Callable[[], Any]) -> dict[str, Any]:
    """Carry a fallback out, however it is done, and report it."""
    try:
        act()
    except BaseException as error:
        job.failed(error)
        raise
    return job.report()


def restore(station: Station, command: CommandContext, context: Any, agent: Any) -> dict[str, Any]:
    """Put back what was saved before a command; what was said since stays behind it."""
    wanted = str(command.args.get("command") or "")
    book, told = station.book(agent), dict[str, Any]()

    def prepare() -> None:
        command.start()
        latches.end_background(book, agent, command.id)
        try:
            told["saved"] = backups.load(agent, wanted)
        except backups.Unreadable as error:
            raise Failed(str(error)) from error
        told["backup"] = backups.save(agent, command.id, now_ms())

    def change() -> None:
        told["before"] = int(agent.history.get_tokens())
        _put_back(agent, told["saved"])
        let_go(agent)
        save_chat(context)
        told["after"] = int(agent.history.get_tokens())

    carry_out(command, context, agent, Work(prepare, change))
    show(book, agent)
    return {key: told[key] for key in ("before", "after", "backup")}


def _put_back(agent: Any, saved: Any) -> None:
    now = agent.history
    known = set(message_ids(saved))
    since = [topic for topic in now.topics if not known & {str(m.id) for m in topic.messages}]
    # A summary that stands for saved messages carries none of their ids and none of anybody's
    # words since: only topics that were begun after the backup are kept.
    new = [message for message in now.current.messages if str(message.id) not in known]
    started_since = len(new) == len(now.current.messages) and bool(new)
    if started_since or since:
        saved.new_topic()
    for topic in since:
        topic.history = saved
        saved.topics.append(topic)
    saved.current.messages.extend(new)
    saved.counter = max(saved.counter, now.counter)
    agent.history = saved


def repair(station: Station, command: CommandContext, context: Any, agent: Any) -> dict[str, Any]:
    """Close every call of a tool that never got a result, with one that says so."""
    book, told = station.book(agent), dict[str, Any]()

    def prepare() -> None:
        command.wait_until(lambda: not host.is_running(context), "the running turn")
        command.start()
        latches.end_background(book, agent, command.id)
        made = mirror_of(book, agent)
        _, told["repair"] = repair_pairs(made.history, count=host.count_message)
        told["signature"] = made.signature
        if told["repair"].changed:
            told["backup"] = backups.save(agent, command.id, now_ms())

    def change() -> None:
        if signature(agent.history) != told["signature"]:
            raise Failed("a message came in between; try again")
        told["before"] = int(agent.history.get_tokens())
        made = mirror_of(book, agent)
        _close_calls(agent, made)
        save_chat(context)
        told["after"] = int(agent.history.get_tokens())

    carry_out(command, context, agent, Work(prepare, change))
    show(book, agent)
    changed = told["repair"].changed
    return {
        "before": told["before"],
        "after": told["after"],
        "backup": told.get("backup"),
        "reason": None if changed else "no broken pair was found",
        "detail": told["repair"].to_dict(),
    }


def _close_calls(agent: Any, made: Mirror) -> None:
    """Behind each open call, the result that says that there is none."""
    kind: Any = None
    for topic in (*made.history.topics, made.history.current):
        items = list(topic.items)
        answered = {call for item in items for call in item.answers}
        for item in items:
            if not item.calls or item.calls[0] in answered:
                continue
            message = made.messages[item.id]
            kind = kind or type(message)
            note = {"tool_name": item.name, "tool_result": "[no result was recorded]"}
            own = made.topics[topic.id].messages
            own.insert(own.index(message) + 1, kind(ai=False, content=note))


def let_go(agent: Any) -> None:
    """The provider must not go on from a history that is no longer ours, nor the count be kept."""
    state = agent.data.get(host.RESPONSES)
    if isinstance(state, dict):
        for key in latches.HELD:
            state.pop(key, None)
    agent.data.pop(host.WINDOW, None)


def save_chat(context: Any) -> None:
    save = host.attribute("helpers.persist_chat", "save_tmp_chat")
    if save is not None:
        save(context)


def rescue(station: Station, command: CommandContext, context: Any, agent: Any) -> dict[str, Any]:
    """Kill the turn and its background work, fall back, go on. Destructive for the turn."""
    job = Fallback(station, command, context, agent)

    def act() -> None:
        command.start()
        for _ in range(_RESCUES):
            _kill(job)
            job.prepare()
            done, _ = change_at_rest(context, agent, job.change)
            if done:
                return
        raise Failed("turns kept beginning in this chat; try again")

    try:
        told = finished(job, act)
    except Failed as nothing:
        if job.plan is None or job.plan.steps:
            raise
        # Already small enough: the turn was still stuck, so it goes on all the same.
        told = {"reason": nothing.reason}
    if not host.is_running(context):
        context.nudge()
    return told


def _kill(job: Fallback) -> None:
    """End the turn and its background pass, and be sure that nothing of them runs any more."""
    # What a user has just said is in the history after this, so no kill can lose it.
    loops.barrier(host.TURNS)
    job.context.kill_process()
    latches.end_background(job.book, job.agent, job.command.id)
    loops.barrier(host.BACKGROUND)
    loops.barrier(host.TURNS)


def _steps(plan: Plan) -> list[dict[str, Any]]:
    return [
        {"step": step.step, "before": step.before, "after": step.after, "calls": 0}
        for step in plan.steps
    ]


def _whole(command: CommandContext, name: str, least: int) -> int | None:
    """A number of the command's arguments; None where it gives none. Raises Failed."""
    given = command.args.get(name)
    if given is None:
        return None
    if type(given) not in (int, float) or given != given or given < least:
        raise Failed(f"{name}: must be a whole number of at least {least}, not {given!r}")
    return int(given)
