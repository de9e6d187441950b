"""Replies: several rows with one message id are one reply, told once with its usage."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.claude_code.context import Context
from ctxhealth.readers.claude_code.items import items_of
from ctxhealth.readers.claude_code.rows import load_of, wire_usage
from ctxhealth.readers.claude_code.stay import Stay
from ctxhealth.readers.claude_code.turns import Turns
from ctxhealth.readers.timeline import Part, Timeline
from ctxhealth.readers.values import Row, dict_at, short, text_at

_REMEMBERED = 1_024
# A reply without a stop reason is told after so long; more of it may still come.
QUIET_MS = 1_000
# After so long no further row of anything is awaited.
LONG_MS = 20_000
_MOST_ITEMS = 500


class Replies(Part):
    """``group`` is the reply whose rows are still coming; ``pending`` a request without reply."""

    kept = ("group", "pending", "told", "count", "model")

    def __init__(self, line: Timeline, context: Context, turns: Turns, stay: Stay) -> None:
        self._line, self._context, self._turns, self._stay = line, context, turns, stay
        self.group: dict[str, Any] | None = None
        self.pending: list[Any] | None = None
        self.told: dict[str, None] = {}
        self.count = 0
        self.model: str | None = None

    def request(self, id: str, ts: int) -> None:
        """The transcript says that a request left (newer versions only)."""
        self.close()
        self.unresolved("other", "no reply to this request is in the transcript", ts)
        self._line.extend(self._turns.ensure(id, ts))
        self._line.extend(self._stay.request(self._turns.id, self.model, ts))
        self._line.add("request.sent", ts, request=id)
        self.pending = [id, ts]

    def row(self, row: Row, uuid: str, ts: int, sent: int) -> None:
        """One row of a reply. ``sent``: when its request left, where no row says it."""
        message = dict_at(row, "message")
        id = text_at(message, "id") or uuid
        if id in self.told:
            self._late(row, id, uuid, ts)
            return
        if self.group is None or self.group["id"] != id:
            self.close()
            self._open(row, id, uuid, ts, sent)
        self._gather(row, message, uuid, ts)

    def close(self) -> None:
        """No more rows of this reply: tell it."""
        group, self.group = self.group, None
        if group is None:
            return
        load = load_of(group["usage"])
        self._line.release()
        events = self._turns.ensure(group["uuid"], group["sent"])
        events += self._stay.request(self._turns.id, self.model, group["sent"])
        events += self._request(group)
        events.append(self._reply(group))
        for item in group["items"]:
            item["turn"] = item["topic"] = self._turns.id
        self._line.fill_slot(events + group["items"])
        if load is not None:
            self._context.load = load
            self._stay.reply(load)
        self._remember(group["id"])
        self.count += 1
        self._turns.replied(_held(group["content"]), group["finish"])
        self._turns.over(group["ts"], bool(self._context.calls))

    def settle(self, idle_ms: int) -> None:
        """Close the reply if nothing more of it is to be expected after ``idle_ms``.

        A stop reason is known only when the whole reply is, and its rows are then written at
        once. Older versions write none: the next block may still be on its way, and is added to
        the reply when it comes. Thoughts alone are no reply yet: they wait for what they lead to.
        """
        group = self.group
        if group is None:
            return
        shown = _held(group["content"]) in ("text", "tools")
        if group["finish"] is not None or idle_ms >= (QUIET_MS if shown else LONG_MS):
            self.close()

    def overtaken(self, ts: int) -> None:
        """Another chat's row at ``ts``: that one goes on, so this file is quiet for this one."""
        if self.group is not None:
            self.settle(min(ts - self.group["ts"], QUIET_MS))

    def unresolved(self, error: str, detail: str, ts: int) -> bool:
        """A request that left and got no reply ends here."""
        if self.pending is None:
            return False
        self._line.add("model.failed", ts, request=self.answered(), error=error, detail=detail)
        return True

    def answered(self) -> str:
        """The pending request's id; it is pending no longer."""
        assert self.pending is not None
        id, self.pending = str(self.pending[0]), None
        return id

    def empty(self, ts: int) -> None:
        """The provider answered with nothing; Claude Code leaves no row of it and no usage."""
        self.close()
        if self.pending is not None:
            id = self.answered()
        else:
            self.count += 1
            id = f"empty-{self.count}"
            self._line.extend(self._turns.ensure(id, ts))
            self._line.add("request.sent", ts, request=id)
        self._line.add("model.replied", ts, request=id, content={})
        self._turns.empty()

    def _open(self, row: Row, id: str, uuid: str, ts: int, sent: int) -> None:
        reference = text_at(row, "requestRef")
        known = self.pending is not None and reference in (None, self.pending[0])
        if not known:
            self.unresolved("other", "no reply to this request is in the transcript", ts)
        request = self.pending[0] if self.pending is not None else (reference or id)
        self.pending = None
        self._line.open_slot()
        self._context.since = 0
        self.group = {
            "id": id, "uuid": uuid, "request": request, "known": known, "sent": sent,
            "ts": ts, "model": None, "usage": {}, "finish": None, "items": [],
            "content": _nothing(),
        }  # fmt: skip

    def _gather(self, row: Row, message: Row, uuid: str, ts: int) -> None:
        group = self.group
        assert group is not None
        group["ts"] = max(group["ts"], ts)
        group["model"] = text_at(message, "model") or group["model"]
        group["finish"] = text_at(message, "stop_reason") or group["finish"]
        usage = dict_at(message, "usage")
        # The input is the same on every row; only the last row has the whole output.
        if load_of(usage) is not None and not _smaller(usage, group["usage"]):
            group["usage"] = {key: usage[key] for key in _USAGE if key in usage}
        for item in items_of(row, uuid, "assistant"):
            _count(group["content"], item)
            self._context.added(item)
            if len(group["items"]) < _MOST_ITEMS:
                group["items"].append(self._line.make(item.pop("type"), ts, **item))

    def _late(self, row: Row, id: str, uuid: str, ts: int) -> None:
        """A further row of a reply already told: its items count, its usage does not again."""
        content = _nothing()
        turn = self._turns.id
        for item in items_of(row, uuid, "assistant"):
            _count(content, item)
            self._context.added(item)
            self._line.add(item.pop("type"), ts, **item, turn=turn, topic=turn)
        if self.group is None and id == next(reversed(self.told)):
            self._turns.grown(_held(content), text_at(dict_at(row, "message"), "stop_reason"))
            self._turns.over(ts, bool(self._context.calls))

    def _request(self, group: dict[str, Any]) -> list[Event]:
        if group["known"]:
            return []
        return [self._line.make("request.sent", group["sent"], request=group["request"])]

    def _reply(self, group: dict[str, Any]) -> Event:
        return self._line.make(
            "model.replied", group["ts"], request=group["request"], model=group["model"],
            usage=wire_usage(group["usage"]), finish=group["finish"],
            content={key: value for key, value in group["content"].items() if value},
            message=group["id"],
        )  # fmt: skip

    def _remember(self, id: str) -> None:
        self.told[id] = None
        if len(self.told) > _REMEMBERED:
            del self.told[next(iter(self.told))]


_USAGE = (
    "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
    "output_tokens_details", "iterations",
)  # fmt: skip


def request_name(uuid: str) -> str:
    """The id of a request that only its failure tells of."""
    return f"r-{short(uuid)}"


def _smaller(usage: Row, than: Row) -> bool:
    ours, theirs = usage.get("output_tokens"), than.get("output_tokens")
    return isinstance(ours, int) and isinstance(theirs, int) and ours < theirs


def _nothing() -> dict[str, int]:
    return {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0, "data": 0}


def _count(content: dict[str, int], item: Event) -> None:
    if item["kind"] == "text":
        # Only non-blank text is shown to anybody; the excerpt is enough to tell blank from not.
        content["text_chars"] += item["chars"] if item.get("excerpt", "").strip() else 0
    elif item["kind"] == "tool_call":
        content["tool_calls"] += 1
    elif item["kind"] == "reasoning":
        content["thinking_chars"] += max(item["chars"], 1)
    else:
        content["data"] += 1


def _held(content: dict[str, int]) -> str:
    if content["tool_calls"]:
        return "tools"
    if content["text_chars"] or content["data"]:
        return "text"
    return "thinking" if content["thinking_chars"] else "nothing"
