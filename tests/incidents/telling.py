"""A case told as wire events, with what must be seen at the points where something is seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.incidents.roots import ROOTS

START = 1_790_000_000_000
SECOND = 1_000
MINUTE = 60 * SECOND

Fields = dict[str, Any]


class Telling:
    """Lines of one fixture. Every event takes one second unless ``wait`` says more."""

    def __init__(self) -> None:
        self.lines: list[Fields] = []
        self.checks: list[Fields] = []
        self.chat = "chat"
        self.at = START
        self._ids = 0

    def say(self, type: str, **fields: Any) -> Telling:
        """One event; a field that is None is not stated and stays absent."""
        self.at += SECOND
        named = {key: value for key, value in fields.items() if value is not None}
        seq = sum(not line["type"].startswith("server.") for line in self.lines) + 1
        head: Fields = {"seq": seq, "type": type, "ts": self.at, "chat": self.chat}
        self.lines.append({**head, **named})
        return self

    def wait(self, ms: int) -> Telling:
        self.at += ms
        return self

    def check(self, **expected: Any) -> Telling:
        """What is expected once the lines told so far are folded."""
        self.checks.append({"after": len(self.lines), "chat": self.chat, **expected})
        return self

    def name(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}{self._ids}"

    # short forms

    def transcript(self) -> Telling:
        """Known from a file: nothing can be told to its agent."""
        return self.say("server.connected", read_only=True)

    def looked_at(self, after: int) -> Telling:
        """The server looks again ``after`` ms later."""
        self.wait(after - SECOND)
        return self.say("server.tick")

    def opened(self, **facts: Any) -> Telling:
        return self.say("chat.opened", **facts)

    def turn(self, kind: str | None = None) -> str:
        turn = self.name("t")
        self.say("turn.started", turn=turn, kind=kind)
        return turn

    def ends(self, turn: str, outcome: str, error: str | None = None) -> Telling:
        return self.say("turn.ended", turn=turn, outcome=outcome, error=error)

    def message(self, role: str = "user", kind: str = "text", **fields: Any) -> str:
        item = fields.pop("id", None) or self.name("m")
        self.say("message.added", id=item, role=role, kind=kind, **fields)
        return str(item)

    def ask(self, **fields: Any) -> str:
        request = self.name("r")
        self.say("request.sent", request=request, **fields)
        return request

    def reply(
        self,
        prompt: int | None = None,
        *,
        request: str | None = None,
        sent: Fields | None = None,
        **fields: Any,
    ) -> Telling:
        """A reply; ``prompt`` is the provider's count where the report has one."""
        usage = None if prompt is None else {"dialect": "openai", "input": prompt}
        name = request or self.ask(**(sent or {}))
        return self.say("model.replied", **{"request": name, "usage": usage, **fields})

    def empty(self, prompt: int | None = None, **fields: Any) -> Telling:
        return self.reply(prompt, content={"text_chars": 0}, **fields)

    def fails(self, error: str, *, sent: Fields | None = None, **fields: Any) -> Telling:
        request = self.ask(**(sent or {}))
        purpose = (sent or {}).get("purpose")
        return self.say("model.failed", request=request, error=error, purpose=purpose, **fields)

    def compacts(
        self,
        before: int | None = None,
        after: int | None = None,
        *,
        trigger: str = "proactive",
        scope: str | None = None,
        reported: str = "ok",
        took: int = 0,
        attempt: str | None = None,
        **fields: Any,
    ) -> str:
        """One attempt, started and finished ``took`` ms later; returns its id."""
        name = attempt or self.name("a")
        self.say("compaction.started", attempt=name, trigger=trigger, scope=scope, before=before)
        self.wait(took)
        self.say(
            "compaction.finished", attempt=name, reported=reported, scope=scope, before=before,
            after=after, **fields,
        )  # fmt: skip
        return name


@dataclass(frozen=True)
class Case:
    """One fixture: where it was reported, what it is, and what of it is not as the case says."""

    name: str
    source: str
    kinds: str
    title: str
    note: str
    tell: Callable[[Telling], None] = field(repr=False)

    def telling(self) -> Telling:
        told = Telling()
        self.tell(told)
        return told

    def stream(self) -> str:
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self._told.lines)

    def expected(self) -> str:
        about = {
            "case": self.name, "source": self.source, "kinds": self.kinds, "title": self.title,
            "note": self.note, "checks": self.checks,
        }  # fmt: skip
        return json.dumps(about, indent=1, ensure_ascii=False) + "\n"

    @property
    def checks(self) -> list[dict[str, Any]]:
        """Each chat's last one says what incident there must have been, or that there was none."""
        checks: list[dict[str, Any]] = self._told.checks
        last = {check["chat"]: check for check in checks}
        for check in last.values():
            check["incident"] = ROOTS.get(self.name)
        return checks

    @property
    def _told(self) -> Telling:
        return self.telling()


CASES: list[Case] = []


def case(
    name: str, source: str, kinds: str, title: str, note: str = ""
) -> Callable[[Callable[[Telling], None]], Callable[[Telling], None]]:
    def register(tell: Callable[[Telling], None]) -> Callable[[Telling], None]:
        CASES.append(Case(name, source, kinds, title, note, tell))
        return tell

    return register
