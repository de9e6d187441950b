"""Commands as people press and cancel them: queued or refused with a reason, always audited."""

from __future__ import annotations

from typing import Any

import msgspec
from django.conf import settings

from ctxhealth.store.ids import uuid7
from ctxhealth.store.models import Chat, Command, Latch
from ctxhealth.store.people import can_operate
from ctxhealth.store.queries.commands import CommandRow, command_row
from ctxhealth.store.redaction import redact_text
from ctxhealth.store.through import call
from ctxhealth.store.writes.audit import audit, name_of
from ctxhealth.store.writes.delivery import changed, current_unit, end, tell
from ctxhealth.wire import limits

KINDS = (
    "compact_fallback", "clear_latch", "compact_summarize", "continue", "stop_turn",
    "rescue", "repair_pairs", "restore_backup", "snapshot", "ping",
)  # fmt: skip
READING_KINDS = frozenset({"snapshot", "ping"})
ARGS_BYTES = 16 * 1024


class OpenCommand(Exception):
    """A mutating command of this chat is still open: 409 with the first one."""

    def __init__(self, command: CommandRow) -> None:
        super().__init__(f"{command.kind} by {command.by} is still {command.state}")
        self.command = command


class Refused(Exception):
    """The press was refused before anything was queued. ``reason`` is a word for machines:
    no_right, server_read_only, no_chat, closed, offline, read_only, unsupported, no_latch, bad,
    key_used (the idempotency key belongs to another request)."""

    def __init__(self, reason: str, detail: str, field: str = "") -> None:
        super().__init__(detail)
        self.reason, self.detail, self.field = reason, detail, field


def command_request(
    *,
    chat_id: int,
    kind: str,
    args: dict[str, Any] | None = None,
    reason: str = "",
    idempotency_key: str,
    by: Any,
    expected_compaction: int | None = None,
    by_name: str = "",
    allowed: bool | None = None,
    ip: str = "",
    request_id: str = "",
) -> CommandRow:
    """Queue a command for the chat's agent. The same key gives the same command again.

    ``allowed`` stands in for the person's role where a token with scope ``operate`` asks;
    ``expected_compaction`` is the count the operator saw, else the present one. Raises Refused
    and OpenCommand; both leave an audit row.
    """
    outcome = call(
        _request,
        _Press(
            chat_id=chat_id,
            kind=kind,
            args=args or {},
            reason=reason,
            key=idempotency_key,
            by=by,
            by_name=by_name or name_of(by),
            allowed=can_operate(by) if allowed is None else allowed,
            expected_compaction=expected_compaction,
            ip=ip,
            request_id=request_id,
        ),
    )
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def command_cancel(
    *, command_id: str, by: Any, by_name: str = "", allowed: bool | None = None, ip: str = ""
) -> CommandRow:
    """Cancel what has not started: at once where it was not sent, else the agent is asked.

    ``allowed`` stands in for the person's role where a token asks, as in ``command_request``.

    Raises Refused (no_right, no_command, started, ended).
    """
    may = can_operate(by) if allowed is None else allowed
    outcome = call(_cancel, command_id, by, by_name or name_of(by), may, ip)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def press_follow_up(command: Command) -> None:
    """Then continue the unanswered turn, where the person who pressed ticked that.

    Recovery ends when the user has an answer; the second command is theirs as the first was,
    with an audit row of its own, and is refused like any other where the agent cannot do it.
    """
    if msgspec.json.decode(command.args).get("then") != "continue" or command.chat_id is None:
        return
    outcome = _request(
        _Press(
            chat_id=command.chat_id,
            kind="continue",
            args={},
            reason=command.reason,
            key=f"then-{command.id}",
            by=command.by,
            by_name=command.by_name,
            allowed=True,
            expected_compaction=None,
            ip="",
            request_id="",
        )
    )
    if isinstance(outcome, CommandRow):
        Command.objects.filter(id=outcome.id).update(follows=command)


class _Press(msgspec.Struct, frozen=True, kw_only=True):
    chat_id: int
    kind: str
    args: dict[str, Any]
    reason: str
    key: str
    by: Any
    by_name: str
    allowed: bool
    expected_compaction: int | None
    ip: str
    request_id: str


def _request(press: _Press) -> CommandRow | OpenCommand | Refused:
    chat = Chat.objects.select_related("agent").filter(id=press.chat_id).first()
    same = _same_press(chat, press)
    if isinstance(same, CommandRow):
        return same
    refusal = same or _refusal(press, chat)
    if refusal is not None:
        _audit_press(press, chat, f"refused: {refusal.reason}", None)
        return refusal
    assert chat is not None
    mutating = press.kind not in READING_KINDS
    first = Command.objects.select_related("agent", "chat").filter(
        chat=chat, open=True, mutating=True
    )
    blocking = first.first() if mutating else None
    if blocking is not None:
        _audit_press(press, chat, "refused: open command", blocking.id)
        return OpenCommand(command_row(blocking))
    command = _queue(press, chat, mutating)
    _audit_press(press, chat, "queued", command.id)
    tell(current_unit(), command, "queued", press.reason)
    return command_row(command)


def _same_press(chat: Chat | None, press: _Press) -> CommandRow | Refused | None:
    """The command that this very request queued before, or what else its key was used for."""
    if chat is None or not press.allowed:
        return None
    rows = Command.objects.select_related("agent", "chat")
    row = rows.filter(agent_id=chat.agent_id, idempotency_key=press.key).first()
    if row is None:
        return None
    clash = _clash(row, press)
    return Refused("key_used", clash, "idempotency_key") if clash else command_row(row)


def _clash(first: Command, press: _Press) -> str:
    """What differs between this press and the first one with its key; empty where nothing."""
    args = msgspec.json.decode(msgspec.json.encode(press.args))
    if first.chat_id != press.chat_id:
        differs = f"chat {first.chat_id}"
    elif first.kind != press.kind:
        differs = f"kind {first.kind}"
    elif msgspec.json.decode(first.args) != args:
        differs = "other args"
    else:
        return ""
    return f"This key was used for command {first.id} with {differs}: use a new key."


def _refusal(press: _Press, chat: Chat | None) -> Refused | None:
    if getattr(settings, "CTXHEALTH_READ_ONLY", False):
        return Refused("server_read_only", "This server is read-only: no action can be pressed.")
    if not press.allowed:
        return Refused("no_right", "Only operators and admins may press actions.")
    if chat is None:
        return Refused("no_chat", f"There is no chat {press.chat_id}.")
    return _bad_press(press) or _unable(press, chat)


def _bad_press(press: _Press) -> Refused | None:
    if press.kind not in KINDS:
        return Refused("bad", f"{press.kind!r} is not a kind of command.", "kind")
    if not 1 <= len(press.key) <= 200:
        return Refused("bad", "1 to 200 characters are needed.", "idempotency_key")
    if len(press.reason) > 4_000:
        return Refused("bad", "At most 4,000 characters.", "reason")
    if len(msgspec.json.encode(press.args)) > ARGS_BYTES:
        return Refused("bad", f"At most {ARGS_BYTES} bytes.", "args")
    return None


def _unable(press: _Press, chat: Chat) -> Refused | None:
    agent = chat.agent
    caps = msgspec.json.decode(agent.caps)
    able = caps.get("commands", [])
    if caps.get("read_only"):
        return Refused("read_only", "This chat is followed read-only: no command reaches it.")
    if chat.closed:
        return Refused("closed", "This chat is closed.")
    if agent.connected_at is None:
        text = f"{agent.name} reports by HTTP: it has no command channel."
        return Refused("unsupported", text)
    if not agent.connected:
        return Refused("offline", f"The agent {agent.name} is not connected.")
    if press.kind not in able:
        helps = f" It can do: {', '.join(able)}." if able else " It takes no commands."
        return Refused("unsupported", f"{agent.name} cannot do {press.kind}.{helps}")
    if press.kind == "clear_latch":
        return _no_such_latch(press, chat)
    return None


def _no_such_latch(press: _Press, chat: Chat) -> Refused | None:
    latch = press.args.get("latch")
    if not isinstance(latch, str) or not latch:
        return Refused("no_latch", "Name the latch to clear.", "args.latch")
    if not Latch.objects.filter(chat=chat, latch=latch, cleared_at=None).exists():
        return Refused("no_latch", f"There is no open latch {latch!r} in this chat.", "args.latch")
    return None


def _queue(press: _Press, chat: Chat, mutating: bool) -> Command:
    work = current_unit()
    held = work.held(chat.pk)
    ping = press.kind == "ping"
    compactions = held.state.compactions.finished if held else None
    if press.expected_compaction is not None:
        compactions = press.expected_compaction
    return Command.objects.create(
        id=uuid7(work.now),
        project_id=chat.project_id,
        agent=chat.agent,
        chat=chat,
        kind=press.kind,
        args=msgspec.json.encode(press.args).decode(),
        expected_epoch=chat.agent.epoch,
        expected_compaction=compactions if mutating else None,
        expected_latch=str(press.args.get("latch", "")) if press.kind == "clear_latch" else "",
        mutating=mutating,
        idempotency_key=press.key,
        reason=redact_text(press.reason),
        by=press.by if getattr(press.by, "pk", None) is not None else None,
        by_name=press.by_name,
        created_at=work.now,
        deliver_by=work.now + (limits.PING_DELIVER_MS if ping else limits.DELIVER_MS),
        lease_s=limits.LEASE_SECONDS,
    )


def _audit_press(press: _Press, chat: Chat | None, result: str, command: str | None) -> None:
    audit(
        action=f"command.{press.kind}",
        result=result,
        by=press.by if press.by is not None else press.by_name or None,
        target=chat.external_id if chat else str(press.chat_id),
        chat=chat.pk if chat else None,
        command=command,
        reason=press.reason,
        detail={"args": press.args} if press.args else None,
        ip=press.ip,
        request_id=press.request_id,
    )


def _cancel(command_id: str, by: Any, by_name: str, allowed: bool, ip: str) -> CommandRow | Refused:
    rows = Command.objects.select_related("agent", "chat")
    command = rows.filter(id=command_id).first()
    refusal = _cannot_cancel(command, allowed)
    if command is None or refusal is not None:
        refusal = refusal or Refused("no_command", "There is no such command.")
        audit(action="command.cancel", result=f"refused: {refusal.reason}", by=by or by_name,
              target=command_id, ip=ip)  # fmt: skip
        return refusal
    if command.state == "queued":
        end(current_unit(), command, "cancelled", f"cancelled by {by_name}")
    else:
        Command.objects.filter(id=command_id, cancel_asked_at=None).update(
            cancel_asked_at=current_unit().now, cancel_by=by_name
        )
        changed(current_unit(), command, command.state)
    audit(
        action="command.cancel",
        result="done" if command.state == "queued" else "asked",
        by=by or by_name,
        target=command_id,
        chat=command.chat_id,
        command=command_id,
        ip=ip,
    )
    return command_row(rows.get(id=command_id))


def _cannot_cancel(command: Command | None, allowed: bool) -> Refused | None:
    if not allowed:
        return Refused("no_right", "Only operators and admins may cancel.")
    if command is None:
        return Refused("no_command", "There is no such command.")
    if command.state == "started":
        return Refused("started", "It has started; it can no longer be cancelled.")
    if not command.open:
        return Refused("ended", f"It has already ended: {command.state}.")
    return None
