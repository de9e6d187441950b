"""A hand-over note to begin with, made of what the shift's page shows; Markdown."""

from __future__ import annotations

from ctxhealth.store.queries import IncidentRow, OpenCause, Pressed, Shift
from ctxhealth.web.actions import ACTIONS
from ctxhealth.web.format import clock, duration, number, plural, words

CHATS_NAMED = 3
LINES = 20


def draft_of(shift: Shift, now: int) -> str:
    """Facts only; what they mean is for the person to write."""
    parts = [
        f"Shift from {clock(shift.since, now)} to {clock(now, now)} UTC: "
        f"{plural(shift.opened, 'incident')} opened, {number(len(shift.closed))} closed."
    ]
    parts += _section("Open", [_cause(cause, now) for cause in shift.causes])
    parts += _section("Pressed, and still in trouble", [_press(p, now) for p in shift.unresolved])
    parts += _section("Closed in this shift", [_closed(row) for row in shift.closed])
    parts += _section(
        "Silences that expire",
        [f"{row.words} until {clock(row.until, now)} UTC ({row.by}: {row.reason})"
         for row in shift.silences],
    )  # fmt: skip
    parts += ["", "## To do", "", "- nothing noted yet"]
    return "\n".join(parts)


def _section(title: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    more = [f"- and {number(len(lines) - LINES)} more"] if len(lines) > LINES else []
    return ["", f"## {title}", "", *[f"- {line}" for line in lines[:LINES]], *more]


def _cause(cause: OpenCause, now: int) -> str:
    group = cause.group
    named = ", ".join(f"[{_plain(chat.title)}](/chats/{chat.id}/)"
                      for chat in cause.chats[:CHATS_NAMED])  # fmt: skip
    more = len(group.chats) - min(len(group.chats), CHATS_NAMED)
    rest = f" and {number(more)} more" if more else ""
    owner = group.owner or ", ".join(cause.owners) or "nobody yet"
    return f"{group.words}, since {clock(group.since, now)}: {named}{rest}. Owner: {owner}."


def _press(press: Pressed, now: int) -> str:
    command = press.command
    action = ACTIONS[command.kind].label if command.kind in ACTIONS else words(command.kind)
    chat = f"[{_plain(press.chat_title)}](/chats/{command.chat}/)" if command.chat else ""
    said = f": {command.state_reason}" if command.state_reason else ""
    at = clock(command.created_at, now)
    return f"{at} {command.by}: {action} on {chat}, {words(command.state)}{said}"


def _closed(row: IncidentRow) -> str:
    took = duration(None if row.closed_at is None else row.closed_at - row.started_at)
    by = f", acted on by {row.acted_by}" if row.acted_by else ""
    title = _plain(row.chat_title or row.chat_external)
    return f"[{title}](/incidents/{row.id}/): {words(row.root)}, {took}{by}"


def _plain(text: str) -> str:
    """A title inside a link: its own brackets would end it."""
    return "".join(f"\\{char}" if char in "\\[]`*_<" else char for char in text)
