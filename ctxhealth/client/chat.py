"""The handle of one chat: a method for each event of the protocol.

Every method takes ``ts`` (milliseconds since the epoch, now if left out) and keeps fields it
does not name (``**more``) for the server to store. ``None`` means unknown and is not sent.
Sizes are tokens unless the name says otherwise. No method raises or blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .bodies import identifier
from .snapshots import parts_of

if TYPE_CHECKING:
    from .reporter import Reporter


class Chat:
    """Made by ``reporter.chat(id, ...)``. ``facts`` is what was last said about it."""

    def __init__(self, reporter: Reporter, id: str) -> None:
        self.reporter = reporter
        self.id = id
        self.facts: dict[str, Any] = {}

    def event(self, type: str, /, *, ts: int | None = None, **fields: Any) -> bool:
        """Report any event of this chat by its type."""
        return self.reporter.report(type, self.id, ts, fields)

    # -- the chat

    def opened(self, *, ts: int | None = None, **facts: Any) -> None:
        """Reported by ``reporter.chat``; again only after the host forgot the chat."""
        self.facts.update(facts)
        self.event("chat.opened", ts=ts, **facts)

    def updated(self, *, ts: int | None = None, **facts: Any) -> None:
        """Facts changed: model, window, title, ...; only what is named changes."""
        self.facts.update(facts)
        self.event("chat.updated", ts=ts, **facts)

    def closed(self, reason: str | None = None, *, ts: int | None = None) -> None:
        """The chat ended. The handle may be used again: ``opened`` reopens it."""
        self.event("chat.closed", ts=ts, reason=reason)

    # -- turns and messages

    def turn_started(
        self, turn: str | None = None, kind: str = "user", *, ts: int | None = None, **more: Any
    ) -> str:
        """``kind``: user (somebody waits), task or continuation. Returns the turn's id."""
        turn = self._named(turn, "turn")
        self.event("turn.started", ts=ts, turn=turn, kind=kind, **more)
        return turn

    def turn_ended(
        self,
        turn: str,
        outcome: str,
        error: str | None = None,
        *,
        ts: int | None = None,
        **more: Any,
    ) -> None:
        """``outcome``: answered, silent, stopped, error or cancelled."""
        self.event("turn.ended", ts=ts, turn=turn, outcome=outcome, error=error, **more)

    def message_added(
        self,
        id: str | None = None,
        role: str = "user",
        kind: str = "text",
        *,
        tokens: int | None = None,
        text: str | None = None,
        calls: Sequence[str] | None = None,
        answers: Sequence[str] | None = None,
        name: str | None = None,
        turn: str | None = None,
        topic: str | None = None,
        read: bool | None = None,
        unusable: str | None = None,
        ts: int | None = None,
        **more: Any,
    ) -> str:
        """An item entered the history. Returns its id.

        ``role``: system, user, assistant, tool. ``kind``: text, tool_call, tool_result, image,
        summary, data, reasoning. Of ``text`` leaves only what the reporter's ``text`` mode says.
        """
        id = self._named(id, "m")
        if isinstance(text, str):
            more.setdefault("chars", len(text))
        self.event(
            "message.added", ts=ts, id=id, role=role, kind=kind, tokens=tokens, text=text,
            calls=_listed(calls), answers=_listed(answers), name=name, turn=turn, topic=topic,
            read=read, unusable=unusable, **more,
        )  # fmt: skip
        return id

    def history_snapshot(
        self, revision: str | None = None, *, ts: int | None = None, **structure: Any
    ) -> str:
        """The history's structure now; a large one leaves in parts. Returns the revision.

        ``structure``: system, tools, extras, bulks [{id, tokens, records, excerpt}], topics [{id,
        tokens, messages, title, summarised, largest}], current {tokens, messages}, protected,
        images, request_bytes, history, order [{id, role, kind, tokens, in, calls, answers}].
        """
        revision = self._named(revision, "rev")
        for part in parts_of(structure):
            self.event("history.snapshot", ts=ts, revision=revision, **part)
        return revision

    # -- model calls

    def request_sent(
        self,
        request: str | None = None,
        *,
        purpose: str | None = None,
        local: int | None = None,
        max_output: int | None = None,
        ts: int | None = None,
        **more: Any,
    ) -> str:
        """A model call leaves; ``local`` is the agent's own count of its prompt. Returns its id.

        Report the same id to ``model_replied`` or ``model_failed``. More: bytes, images, attempt,
        revision, delta. ``purpose``: chat (default) or utility.
        """
        request = self._named(request, "req")
        self.event(
            "request.sent", ts=ts, request=request, local=local, max_output=max_output,
            **_purpose(purpose), **more,
        )  # fmt: skip
        return request

    def model_replied(
        self,
        request: str,
        *,
        usage: Mapping[str, Any] | None = None,
        content: Mapping[str, int] | None = None,
        finish: str | None = None,
        purpose: str | None = None,
        ts: int | None = None,
        **more: Any,
    ) -> None:
        """``usage``: {dialect, input, output, cache_read, cache_write, ...} as the provider says.

        ``content``: {text_chars (non-blank), tool_calls, thinking_chars, data}. More: model,
        synthetic, ms.
        """
        self.event(
            "model.replied", ts=ts, request=request, usage=usage, content=content, finish=finish,
            **_purpose(purpose), **more,
        )  # fmt: skip

    def model_failed(
        self,
        request: str,
        error: str,
        *,
        status: int | None = None,
        detail: str | None = None,
        purpose: str | None = None,
        ts: int | None = None,
        **more: Any,
    ) -> None:
        """``error``: overflow, rate_limit, quota, timeout, network, auth, invalid, too_large,
        filtered, provider, cancelled or other. More: code, stated_window, stated_prompt, ms.
        """
        self.event(
            "model.failed", ts=ts, request=request, error=error, status=status, detail=detail,
            **_purpose(purpose), **more,
        )  # fmt: skip

    def reply_empty(self, n: int, *, ts: int | None = None, **more: Any) -> None:
        """``n`` replies in a row had nothing in them. More: request, prompt, completion, finish."""
        self.event("reply.empty", ts=ts, n=n, **more)

    def guard_refused(
        self, count: int, limit: int, code: str = "CONTEXT_UNFIT", *, ts: int | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        """The agent refused to send ``count`` tokens over ``limit``. More: window, reserve."""
        self.event("guard.refused", ts=ts, count=count, limit=limit, code=code, **more)

    def agent_stopped(self, reason: str, *, ts: int | None = None, **more: Any) -> None:
        """The agent gave the turn up by its own rule. More: count, limit."""
        self.event("agent.stopped", ts=ts, reason=reason, **more)

    def usage_update(self, used: int, size: int | None = None, *, ts: int | None = None) -> None:
        """``used`` of ``size`` tokens, as in the Agent Client Protocol."""
        self.event("usage.update", ts=ts, used=used, size=size)

    # -- compaction and latches

    def compaction_started(
        self,
        attempt: str | None = None,
        trigger: str = "proactive",
        *,
        before: int | None = None,
        scope: str = "prompt",
        ts: int | None = None,
        **more: Any,
    ) -> str:
        """``trigger``: proactive, reactive, manual, forced or idle. Returns the attempt's id.

        ``scope``: what ``before`` counts, prompt or history. More: phase, input_hash, lease_s,
        revision.
        """
        attempt = self._named(attempt, "att")
        self.event(
            "compaction.started", ts=ts, attempt=attempt, trigger=trigger, before=before,
            scope=scope, **more,
        )  # fmt: skip
        return attempt

    def compaction_finished(
        self,
        attempt: str,
        reported: str,
        *,
        before: int | None = None,
        after: int | None = None,
        scope: str = "prompt",
        reason: str | None = None,
        steps: Iterable[Mapping[str, Any]] | None = None,
        summarizer: Mapping[str, Any] | None = None,
        ts: int | None = None,
        **more: Any,
    ) -> None:
        """``reported``: the agent's own word for how it ended; the server computes the outcome.

        ``steps``: [{step, before, after, calls}]. ``summarizer``: {model, provider, window, calls,
        input, output, error, detail}. More: after_scope, removed, added, meanwhile, input_hash,
        revision, lossy, emptied, backup, trigger, ms.
        """
        self.event(
            "compaction.finished", ts=ts, attempt=attempt, reported=reported, before=before,
            after=after, scope=scope, reason=reason, steps=_listed(steps), summarizer=summarizer,
            **more,
        )  # fmt: skip

    def latch_set(
        self,
        latch: str | None = None,
        scope: str = "turn",
        *,
        kind: str | None = None,
        reason: str | None = None,
        attempt: str | None = None,
        ts: int | None = None,
        **more: Any,
    ) -> str:
        """Something now keeps compaction from running. Returns the latch's id.

        ``scope``: step, send, turn, chat or process. More: key, tokens, bypass, release {until,
        growth, input_changed, turn_end, success}, holder {id, host, since, alive}.
        """
        latch = self._named(latch, "latch")
        self.event(
            "latch.set", ts=ts, latch=latch, scope=scope, kind=kind, reason=reason,
            attempt=attempt, **more,
        )  # fmt: skip
        return latch

    def latch_cleared(
        self, latch: str, how: str, command: str | None = None, *, ts: int | None = None
    ) -> None:
        """``how``: operator, input_changed, turn_end, time, success or restart."""
        self.event("latch.cleared", ts=ts, latch=latch, how=how, command=command)

    # -- the rest

    def command_progress(
        self, command: str, state: str, *, ts: int | None = None, **more: Any
    ) -> None:
        """For commands carried out outside a handler. More: reason, before, after, backup."""
        self.event("command.progress", ts=ts, command=command, state=state, **more)

    def note(self, text: str, level: str = "info", *, ts: int | None = None, **more: Any) -> None:
        """Free text for this chat's log. ``level``: debug, info, warning, error."""
        self.event("note", ts=ts, text=text, level=level, **more)

    def gap(self, count: int, reason: str, *, ts: int | None = None) -> None:
        """Say aloud that ``count`` events of this chat were left out."""
        self.event("gap", ts=ts, count=count, reason=reason)

    def _named(self, given: Any, prefix: str) -> str:
        unnamed = given is None or (isinstance(given, str) and not given)
        return self.reporter.names.mint(prefix) if unnamed else identifier(given)


def _listed(values: Any) -> Any:
    """A copy of what may change or be used up later; left as it is where it is no iterable."""
    if not isinstance(values, Iterable) or isinstance(values, str):
        return values
    try:
        return list(values)
    except Exception:
        return None


def _purpose(purpose: str | None) -> dict[str, str]:
    return {} if purpose is None else {"purpose": purpose}
