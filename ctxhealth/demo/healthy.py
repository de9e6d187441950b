"""Ordinary chats: turns with tool calls, growth, and compactions that really relieve."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from ctxhealth.demo.body import Spec
from ctxhealth.demo.loop import Loop
from ctxhealth.demo.prose import prose
from ctxhealth.demo.provider import Plain
from ctxhealth.engine import Bulk

WINDOW = 200_000
TRIGGER = 160_000
UTILITY = {"model": "claude-haiku-4-5", "provider": "anthropic", "window": WINDOW}
TITLES = (
    "Upgrade the search index", "Flaky login test", "Quarterly churn report", "Invoice parser",
    "Onboarding e-mails", "Release notes 4.2", "Rate limiter design", "Customer 8841 refund",
    "Docs for the webhook", "Type the billing module", "Spanish translation", "Backup check",
)  # fmt: skip


def spec(chat: str, title: str) -> Spec:
    return Spec(
        id=chat,
        title=title,
        model="claude-sonnet-4-5",
        provider="anthropic",
        window=WINDOW,
        system=6_100,
        tools=8_700,
        trigger={"tokens": TRIGGER, "inclusive": True, "scope": "prompt"},
        utility=UTILITY,
    )


class Healthy(Loop):
    """Its pace and sizes are drawn from a generator seeded by the chat's id."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        # Not for secrets: the same chat should live the same life at every start.
        self.chance = Random(self.body.spec.id)
        self.model = Plain(WINDOW)

    def live(self) -> None:
        chance = self.chance
        with self.step():
            self.body.preload([chance.randint(1_500, 5_000) for _ in range(chance.randint(4, 34))])
            self.body.snapshot()
        while not self.over.is_set():
            self.rest(chance.uniform(3, 14))
            self.turn(f"Please go on with step {chance.randint(2, 90)}.")

    def turn(self, text: str) -> None:
        with self.step():
            self.body.begin(text)
            self.compact_if_due()
        for _ in range(self.chance.randint(0, 3)):
            with self.step():
                self.look_up(self.chance.randint(300, 4_500))
            self.rest(self.chance.uniform(0.5, 2.5))
        self.answer()

    def look_up(self, tokens: int) -> None:
        """The model calls a tool, and the tool's result comes back."""
        call = self.body.new_id("call")
        self.body.ask(self.model, "", calls=(call,))
        name = self.chance.choice(("read_file", "search_code", "run_tests", "fetch"))
        self.body.add("assistant", "tool_call", prose(50, 3), calls=(call,), name=name)
        self.body.add(
            "tool", "tool_result", prose(tokens, tokens), answers=(call,), name=name, read=True
        )

    def answer(self) -> None:
        with self.step():
            reply = self.body.ask(self.model, prose(self.chance.randint(120, 700), 5))
            self.answered(reply.text)

    def go_on(self) -> None:
        with self.step():
            self.body.resume()
        self.answer()

    def compact_if_due(self) -> None:
        """The oldest topics become one summary once the prompt reaches the trigger."""
        before = self.body.history.total("prompt")
        if before < TRIGGER:
            return
        history = self.body.history
        keep = 4
        span, rest = history.topics[:-keep], history.topics[-keep:]
        folded = sum(topic.tokens for topic in span) + sum(bulk.tokens for bulk in history.bulks)
        attempt = self.body.new_id("attempt")
        self.body.chat.compaction_started(
            attempt, "proactive", scope="prompt", before=before, phase="pre_turn"
        )
        request = self.body.request_id()
        self.body.chat.request_sent(request, purpose="utility", local=folded, attempt=attempt)
        self.body.wait()
        summary = prose(max(800, folded // 20), 21)
        self.body.chat.model_replied(
            request,
            purpose="utility",
            usage={"dialect": "openai", "input": folded, "output": len(summary) // 4},
            content={"text_chars": len(summary)},
        )
        bulk = Bulk(self.body.new_id("bulk"), len(summary) // 4, summary, records=len(span))
        self.body.replace_history(replace(history, bulks=(bulk,), topics=rest))
        after = self.body.history.total("prompt")
        self.body.chat.compaction_finished(
            attempt,
            "ok",
            scope="prompt",
            before=before,
            after=after,
            steps=[{"step": "summary", "before": before, "after": after, "calls": 1}],
            summarizer={**UTILITY, "calls": 1, "input": folded, "output": bulk.tokens},
        )
        self.body.snapshot()
