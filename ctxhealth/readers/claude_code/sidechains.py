"""Sub-agents inside a session's own file: each is a chat of its own with the session as parent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ctxhealth.readers.claude_code.chat import ChatRows
from ctxhealth.readers.claude_code.items import result_ids
from ctxhealth.readers.claude_code.rows import plain_text
from ctxhealth.readers.claude_code.stay import WindowOf
from ctxhealth.readers.seen import Seen
from ctxhealth.readers.times import millis
from ctxhealth.readers.values import Row, dict_at, short, text_at

MOST_OPEN = 64
_REMEMBERED = 4_096
_STILL_RUNS = "Async agent launched"


class Sidechains:
    """``calls`` maps the parent's tool call to the sub-agent that it runs."""

    def __init__(self, window_of: WindowOf | None, elsewhere: Callable[[str], bool] | None) -> None:
        self._window_of, self._elsewhere = window_of, elsewhere
        self._open: dict[str, ChatRows] = {}
        self._ended: list[ChatRows] = []
        self._calls: dict[str, str] = {}
        self._chains: dict[str, str] = {}
        self.active = False

    def chats(self) -> Iterator[ChatRows]:
        yield from list(self._open.values())
        yield from self._ended

    def row(self, row: Row, uuid: str, ts: int, parent: ChatRows) -> ChatRows | None:
        """A side-chain row of older versions; its chain is found by its parent row. The chat that
        it belongs to, None where that is read elsewhere."""
        agent = text_at(row, "agentId") or self._chain(row, uuid)
        self._remember(self._chains, uuid, agent)
        if self._elsewhere is not None and self._elsewhere(agent):
            return None
        chat = self._chat(agent, row, ts, parent)
        chat.row(row, uuid, ts)
        return chat

    def progress(self, row: Row, ts: int, parent: ChatRows, seen: Seen) -> ChatRows | None:
        """A sub-agent's row inside a progress row of its parent. Its chat, None if elsewhere."""
        data = dict_at(row, "data")
        inner, agent = dict_at(data, "message"), text_at(data, "agentId")
        uuid = text_at(inner, "uuid")
        if agent is None or uuid is None or inner.get("type") not in ("user", "assistant"):
            return None
        if self._elsewhere is not None and self._elsewhere(agent):
            return None
        call = text_at(row, "parentToolUseID")
        if call is not None:
            self._remember(self._calls, call, agent)
        if seen.again(f"{agent}:{uuid}"):
            return self._open.get(agent)
        at = millis(inner.get("timestamp")) or ts
        chat = self._chat(agent, row, at, parent)
        chat.row(inner, uuid, at)
        return chat

    def returned(self, row: Row, ts: int) -> None:
        """A result in the parent ends the sub-agent that it came from."""
        if not self._calls or row["type"] != "user":
            return
        for call in result_ids(row):
            agent = self._calls.pop(call, None)
            if agent in self._open and not plain_text_of_results(row).startswith(_STILL_RUNS):
                self._end(agent, ts)

    def forget_ended(self) -> None:
        self._ended.clear()

    def snapshot(self) -> dict[str, Any]:
        return {
            "open": {agent: chat.snapshot() for agent, chat in self._open.items()},
            "calls": dict(self._calls), "chains": dict(self._chains), "active": self.active,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        self._open = {}
        for agent, saved in state["open"].items():
            chat = ChatRows(saved["chat"], saved["parent"], self._window_of)
            chat.restore(saved)
            self._open[agent] = chat
        self._calls, self._chains = state["calls"], state["chains"]
        self.active = state["active"]

    def _chat(self, agent: str, row: Row, ts: int, parent: ChatRows) -> ChatRows:
        self.active = True
        chat = self._open.get(agent)
        if chat is None:
            if len(self._open) >= MOST_OPEN:
                self._end(next(iter(self._open)), ts)
            chat = ChatRows(f"{parent.chat}:agent-{agent}", parent.chat, self._window_of)
            chat.open(row, ts, None)
            self._open[agent] = chat
        return chat

    def _end(self, agent: str, ts: int) -> None:
        chat = self._open.pop(agent)
        chat.end(ts)
        self._ended.append(chat)

    def _chain(self, row: Row, uuid: str) -> str:
        parent = text_at(row, "parentUuid")
        if parent is None:
            return short(uuid)
        last = next(reversed(self._chains.values()), None)
        return self._chains.get(parent) or last or short(uuid)

    def _remember(self, table: dict[str, str], key: str, value: str) -> None:
        table[key] = value
        if len(table) > _REMEMBERED:
            del table[next(iter(table))]


def plain_text_of_results(row: Row) -> str:
    """The first words of a row's tool results."""
    for block in dict_at(row, "message").get("content") or ():
        content = block.get("content") if isinstance(block, dict) else None
        if isinstance(content, str):
            return content
        if isinstance(content, list):
            return plain_text({"message": {"content": content}})
    return ""
