"""Incident (c): the local count sees 0.60 of the prompt, so a full window goes out unnoticed.

196,602 tokens into a window of 196,608; the provider answers 200 with no tokens, the turn ends as
if all were well, and the user sees nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ctxhealth.demo.body import Spec
from ctxhealth.demo.loop import Loop
from ctxhealth.demo.prose import prose
from ctxhealth.demo.provider import SilentWhenFull
from ctxhealth.engine import History, Item, Topic

WINDOW = 196_608
RATIO = 0.60
FULL = 196_602


def spec(chat: str, title: str) -> Spec:
    return Spec(
        id=chat,
        title=title,
        model="qwen3.8-plus",
        provider="dashscope",
        window=WINDOW,
        system=7_200,
        tools=5_100,
        trigger={"ratio": 0.8, "inclusive": False, "scope": "prompt"},
        ratio=RATIO,
    )


class QwenPaw(Loop):
    """Counts too low; its fallback corrects its counts by what the provider said."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.model = SilentWhenFull(WINDOW, reserve=64)
        self.empties = 0

    def live(self) -> None:
        """Three turns that are answered, one that comes back empty, and the user's second try."""
        with self.step():
            self.body.preload([4_100] * 21)
        for said in ("Summarise the thread.", "Which invoices are open?", "Draft the reply."):
            self.turn(said, result=3_000)
            self.rest(1)
        with self.step():
            self.body.begin("Now compare it with the attached contract, clause by clause.")
            self.read_contract()
        self.answer()
        if not self.rest(8):
            self.go_on()

    def read_contract(self) -> None:
        """A tool result that brings the provider's count to 196,602."""
        call = self.body.new_id("call")
        self.body.add("assistant", "tool_call", prose(40, 3), calls=(call,), name="read_file")
        left = round(FULL * RATIO) - self.body.history.total("prompt")
        self.body.add(
            "tool", "tool_result", prose(left, 9), answers=(call,), name="read_file", read=True
        )

    def turn(self, text: str, result: int = 300) -> None:
        with self.step():
            self.body.begin(text)
            self.look_up(result)
        self.answer()

    def look_up(self, tokens: int) -> None:
        call = self.body.new_id("call")
        self.body.ask(self.model, "", calls=(call,))
        self.body.add("assistant", "tool_call", prose(30, 3), calls=(call,), name="search")
        self.body.add(
            "tool", "tool_result", prose(tokens, 8), answers=(call,), name="search", read=True
        )

    def answer(self) -> None:
        with self.step():
            reply = self.body.ask(self.model, prose(260, self.body.size))
            if not reply.empty:
                self.empties = 0
                self.answered(reply.text)
                return
            self.empties += 1
            self.body.chat.reply_empty(
                self.empties, prompt=self.body.prompt, completion=0, finish="stop"
            )
            self.body.end("silent")

    def go_on(self) -> None:
        with self.step():
            self.body.resume()
        if self.body.ratio == 1:
            for _ in range(3):
                with self.step():
                    self.look_up(200)
        self.answer()

    def do_compact_fallback(self, context: Any) -> dict[str, Any]:
        """Correct the counts first: a target in the provider's tokens needs a history in them."""
        if self.body.ratio != 1:
            self.body.replace_history(scaled(self.body.history, 1 / self.body.ratio))
            self.body.ratio = 1.0
        return super().do_compact_fallback(context)


def scaled(history: History, factor: float) -> History:
    """The same history with every count corrected by ``factor``."""

    def topic(part: Topic) -> Topic:
        return replace(part, items=tuple(item(entry) for entry in part.items))

    def item(entry: Item) -> Item:
        return replace(entry, tokens=round(entry.tokens * factor))

    return replace(
        history,
        system=round((history.system or 0) * factor),
        tools=round((history.tools or 0) * factor),
        bulks=tuple(replace(bulk, tokens=round(bulk.tokens * factor)) for bulk in history.bulks),
        topics=tuple(topic(part) for part in history.topics),
        current=topic(history.current),
    )
