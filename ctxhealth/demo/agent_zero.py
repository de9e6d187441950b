"""Incident (a): compaction needs a utility model, and the utility model is gone.

Two sisters. Where the utility answers *empty*, each pass frees nothing, the oversize prompt goes
out, and five unusable replies stop the agent. Where it *raises* (quota), the chat model is never
called: every turn dies, and the error text makes the history grow.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import Any

from ctxhealth.demo.body import Body, Spec
from ctxhealth.demo.loop import Loop
from ctxhealth.demo.prose import prose
from ctxhealth.demo.provider import LosesTheThread, Refused, Summarizer
from ctxhealth.engine import Bulk

HISTORY_LIMIT = 140_000
UNUSABLE_LIMIT = 5
ATTEMPTS_A_TURN = 3
TRACEBACK = 1_956
# The utility model comes back in the end, as quotas do; a fallback does not wait for it.
OUTAGE_S = 1_200.0
UTILITY = {"model": "glm-5.3-flash", "provider": "zai", "window": 200_000}


def spec(chat: str, title: str) -> Spec:
    return Spec(
        id=chat,
        title=title,
        model="glm-5.3",
        provider="zai",
        window=200_000,
        system=6_400,
        tools=3_100,
        trigger={"tokens": HISTORY_LIMIT, "inclusive": False, "scope": "history"},
        history_limit=HISTORY_LIMIT,
        utility=UTILITY,
    )


def past_topics() -> list[int]:
    """35 unsummarised topics that hold 113,004 tokens together."""
    return [3_229] * 34 + [3_218]


class AgentZero(Loop):
    """What both sisters share: the compression pass and the turn around it."""

    trouble = "empty"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.model = LosesTheThread(window=200_000, sane=145_000)
        self.utility = Summarizer(
            str(UTILITY["model"]), 200_000, self.trouble, heals_at=monotonic() + OUTAGE_S
        )

    def fill(self, current: int) -> None:
        """Past topics, and a long current topic that ends at ``current`` tokens."""
        self.body.preload(past_topics())
        self.body.begin("Run the nightly migration and report every table that fails.")
        call = self.body.new_id("call")
        self.body.add("assistant", "tool_call", prose(180, 3), calls=(call,), name="terminal")
        left = current - self.body.history.current.tokens
        self.body.add(
            "tool", "tool_result", prose(left, 5), answers=(call,), name="terminal", read=True
        )
        self.body.snapshot()

    def compress(self) -> None:
        """One pass over the three oldest topics. Raises Refused where the utility raises."""
        before = self.body.size
        attempt = self.body.new_id("attempt")
        span = self.body.history.topics[:3]
        tokens = sum(topic.tokens for topic in span)
        self.body.chat.compaction_started(
            attempt, "proactive", scope="history", before=before, phase="mid_turn"
        )
        request = self.body.request_id()
        self.body.chat.request_sent(request, purpose="utility", local=tokens, attempt=attempt)
        try:
            self.body.wait()
            summary = self.utility.summarise(tokens)
        except Refused as refused:
            self.body.failed(request, refused, "utility")
            self._finished(attempt, "error", before, tokens, refused.error, refused.detail)
            raise
        self._replied(request, tokens, summary)
        self._fold(summary)
        error = None if summary else "empty"
        word = "compressed" if summary else "stalled"
        self._finished(attempt, word, before, tokens, error, None)

    def _replied(self, request: str, tokens: int, summary: str) -> None:
        self.body.chat.model_replied(
            request,
            purpose="utility",
            usage={"dialect": "openai", "input": tokens, "output": len(summary) // 4},
            content={"text_chars": len(summary)},
            model=self.utility.model,
        )

    def _fold(self, summary: str) -> None:
        """Three topics become a bulk; with an empty summary the bulk still sends its records."""
        history = self.body.history
        span, rest = history.topics[:3], history.topics[3:]
        items = tuple(item for topic in span for item in topic.items)
        tokens = len(summary) // 4 if summary else sum(item.tokens for item in items)
        bulk = Bulk(self.body.new_id("bulk"), tokens, summary, records=len(span), items=items)
        self.body.replace_history(replace(history, bulks=(*history.bulks, bulk), topics=rest))

    def _finished(
        self, attempt: str, word: str, before: int, span: int, error: str | None, detail: str | None
    ) -> None:
        self.body.chat.compaction_finished(
            attempt,
            word,
            scope="history",
            before=before,
            after=self.body.size,
            reason=detail,
            steps=[
                {"step": "topics_to_bulk", "before": before, "after": self.body.size, "calls": 1}
            ],
            summarizer={
                **UTILITY, "calls": 1, "input": span, "output": 0 if error else 40,
                "error": error, "detail": detail,
            },
        )  # fmt: skip
        self.body.snapshot()

    def answer(self) -> None:
        """Ask until a usable reply ends the turn, or five unusable ones end the agent."""
        unusable = 0
        while unusable < UNUSABLE_LIMIT:
            with self.step():
                if self.body.size > HISTORY_LIMIT and unusable < ATTEMPTS_A_TURN:
                    self.compress()
                reply = self.body.ask(self.model, prose(220, self.body.size))
                if not reply.unusable:
                    self.answered(reply.text)
                    return
                unusable += 1
                self.body.add("assistant", "text", reply.text, unusable="malformed")
            self.rest(1)
        with self.step():
            self.body.chat.agent_stopped(
                "unusable replies in a row", count=unusable, limit=UNUSABLE_LIMIT
            )
            self.body.end("stopped")

    def go_on(self) -> None:
        with self.step():
            self.body.resume()
        self.answer()

    def turn(self, text: str) -> None:
        with self.step():
            self.body.begin(text)
        self.answer()


class EmptyUtility(AgentZero):
    """Five unusable replies, then silence."""

    trouble = "empty"

    def live(self) -> None:
        with self.step():
            self.fill(HISTORY_LIMIT + 261 - sum(past_topics()))
        self.rest(2)
        self.answer()


class QuotaUtility(AgentZero):
    """Every turn dies before the chat model is called, and each leaves a traceback behind."""

    trouble = "quota"

    def live(self) -> None:
        with self.step():
            self.fill(HISTORY_LIMIT + 412 - sum(past_topics()))
        self.answer()
        for said in ("Are you still there?", "Please answer. What failed?"):
            if self.rest(12):
                return
            self.turn(said)

    def answer(self) -> None:
        try:
            super().answer()
        except Refused as refused:
            with self.step():
                trace = f"Traceback: {refused.detail} " + prose(TRACEBACK, 11)
                self.body.add("system", "text", trace[: TRACEBACK * 4])
                self.body.end("error", error=refused.detail)


def body(chat: Any, title: str) -> Body:
    return Body(chat, spec(chat.id, title))
