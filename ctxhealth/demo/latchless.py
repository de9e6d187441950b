"""A chat that looks latched and is not: two summaries timed out, and then nobody tries again.

The agent waits for its history to grow before it tries once more; there is no latch to clear, and
it says so when asked. Forcing the fallback is what helps.
"""

from __future__ import annotations

from typing import Any

from ctxhealth.demo.body import Spec
from ctxhealth.demo.loop import Loop
from ctxhealth.demo.prose import prose
from ctxhealth.demo.provider import Plain, Refused, Summarizer

WINDOW = 128_000
TRIGGER = 102_400
UTILITY = {"model": "deepseek-v4-flash", "provider": "deepseek", "window": WINDOW}


def spec(chat: str, title: str) -> Spec:
    return Spec(
        id=chat,
        title=title,
        model="deepseek-v4-pro",
        provider="deepseek",
        window=WINDOW,
        system=5_600,
        tools=6_900,
        trigger={"tokens": TRIGGER, "inclusive": True, "scope": "prompt"},
        utility=UTILITY,
    )


class Latchless(Loop):
    """Declares ``clear_latch`` like its siblings, and answers it honestly."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.model = Plain(WINDOW)
        self.utility = Summarizer(str(UTILITY["model"]), WINDOW, "timeout")

    def live(self) -> None:
        with self.step():
            self.body.preload([3_050] * 30)
        for said in ("Add a test for the parser.", "And one for the empty file."):
            with self.step():
                self.body.begin(said)
                self.compact()
            self.answer()
            self.rest(1.5)
        for said in ("Run them.", "Fix the failing one.", "Show me the diff.", "Commit it."):
            self.turn(said)
            self.rest(1.5)

    def compact(self) -> None:
        before = self.body.history.total("prompt")
        attempt = self.body.new_id("attempt")
        self.body.chat.compaction_started(attempt, "proactive", scope="prompt", before=before)
        request = self.body.request_id()
        span = before - 20_000
        self.body.chat.request_sent(request, purpose="utility", local=span, attempt=attempt)
        try:
            self.body.wait()
            self.utility.summarise(span)
        except Refused as refused:
            self.body.failed(request, refused, "utility")
            self.body.chat.compaction_finished(
                attempt,
                "failed",
                scope="prompt",
                before=before,
                after=before,
                reason=refused.detail,
                summarizer={**UTILITY, "calls": 1, "input": span, "output": 0,
                            "error": refused.error, "detail": refused.detail},
            )  # fmt: skip

    def turn(self, text: str) -> None:
        with self.step():
            self.body.begin(text)
        self.answer()

    def answer(self) -> None:
        with self.step():
            self.answered(self.body.ask(self.model, prose(420, self.body.size)).text)

    def go_on(self) -> None:
        with self.step():
            self.body.resume()
        self.answer()
