"""Incident (b): a compaction that finds nothing to fold yet switches all compaction off.

The first attempt finds the anchor and one tool pair, so nothing may be folded: 0 summarizer
calls, and still the turn is latched. A second pair lands, the provider says overflow, and the
rescue that would now work is blocked by the latch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ctxhealth.client import CommandContext, Refused
from ctxhealth.demo.body import Spec
from ctxhealth.demo.loop import Loop
from ctxhealth.demo.prose import prose
from ctxhealth.demo.provider import Plain, Reply, Summarizer
from ctxhealth.demo.provider import Refused as ProviderRefused
from ctxhealth.engine import Bulk

WINDOW = 200_000
RATIO = 0.8
UTILITY = {"model": "kimi-k3", "provider": "moonshot", "window": WINDOW}


def spec(chat: str, title: str) -> Spec:
    return Spec(
        id=chat,
        title=title,
        model="kimi-k3-200k",
        provider="moonshot",
        window=WINDOW,
        system=9_800,
        tools=7_400,
        trigger={"ratio": RATIO, "inclusive": True, "scope": "prompt"},
        utility=UTILITY,
    )


class Maka(Loop):
    """Has no fallback of its own: it compacts with a summarizer, and it has a turn latch."""

    kinds = ("clear_latch", "compact_summarize", "continue", "snapshot")

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.model = Plain(WINDOW)
        self.utility = Summarizer(str(UTILITY["model"]), WINDOW)
        self.latch: str | None = None

    def live(self) -> None:
        with self.step():
            self.body.begin("Find every caller of the old billing API and list them. " * 20)
            self.tool_pair(149_000)
        self.rest(1.5)
        with self.step():
            self.compact("proactive")
        self.rest(1.5)
        with self.step():
            self.tool_pair(37_400)
        self.rest(1.5)
        self.answer()

    def tool_pair(self, tokens: int) -> None:
        call = self.body.new_id("call")
        self.body.add("assistant", "tool_call", prose(60, 3), calls=(call,), name="search_code")
        self.body.add(
            "tool", "tool_result", prose(tokens, 7), answers=(call,), name="search_code", read=True
        )
        self.body.snapshot()

    # compaction ----------------------------------------------------------------------------

    def compact(self, trigger: str) -> bool:
        """True where it freed something. Latched, it returns early: not even an attempt is made."""
        if self.latch is not None:
            return False
        before = self.body.history.total("prompt")
        attempt = self.body.new_id("attempt")
        self.body.chat.compaction_started(
            attempt, trigger, scope="prompt", before=before, phase="mid_turn"
        )
        span = self.span()
        if not span:
            self._no_fold(attempt, before, "fail_open", "no_safe_completed_span")
            self.set_latch(attempt, before)
            return False
        return self._fold(attempt, before, span)

    def span(self) -> int:
        """How many items after the anchor form completed pairs, the newest pair left out."""
        items = self.body.history.current.items
        results = [at for at, item in enumerate(items) if item.answers]
        return results[-2] if len(results) > 1 else 0

    def set_latch(self, attempt: str, tokens: int) -> None:
        self.latch = self.body.new_id("latch")
        self.body.chat.latch_set(
            self.latch,
            "turn",
            reason="no_safe_completed_span",
            attempt=attempt,
            tokens=tokens,
            bypass=["manual"],
            release={"turn_end": True},
        )

    def _no_fold(self, attempt: str, before: int, word: str, reason: str) -> None:
        self.body.chat.compaction_finished(
            attempt,
            word,
            scope="prompt",
            before=before,
            after=before,
            reason=reason,
            summarizer={**UTILITY, "calls": 0},
        )

    def _fold(self, attempt: str, before: int, span: int) -> bool:
        history = self.body.history
        items = history.current.items
        folded = items[1 : span + 1]
        tokens = sum(item.tokens for item in folded)
        request = self.body.request_id()
        self.body.chat.request_sent(request, purpose="utility", local=tokens, attempt=attempt)
        self.body.wait()
        summary = self.utility.summarise(tokens) + " " + prose(2_100, 13)
        self.body.chat.model_replied(
            request,
            purpose="utility",
            usage={"dialect": "openai", "input": tokens, "output": len(summary) // 4},
            content={"text_chars": len(summary)},
        )
        bulk = Bulk(self.body.new_id("bulk"), len(summary) // 4, summary, items=folded)
        current = replace(history.current, items=(items[0], *items[span + 1 :]))
        self.body.replace_history(replace(history, bulks=(*history.bulks, bulk), current=current))
        after = self.body.history.total("prompt")
        self.body.chat.compaction_finished(
            attempt,
            "folded",
            scope="prompt",
            before=before,
            after=after,
            steps=[{"step": "summary", "before": before, "after": after, "calls": 1}],
            summarizer={**UTILITY, "calls": 1, "input": tokens, "output": bulk.tokens},
            removed=[item.id for item in folded],
            added=[{"id": bulk.id, "kind": "summary", "tokens": bulk.tokens}],
        )
        self.body.snapshot()
        return True

    # the turn ------------------------------------------------------------------------------

    def answer(self) -> None:
        """Ask; after an overflow try the rescue, and keep trying while the turn is open."""
        while not self.over.is_set():
            with self.step():
                reply = self._ask_or_rescue()
                if reply is not None:
                    self.answered(reply.text)
                    self.latch = None
                    return
            self.rest(20)

    def _ask_or_rescue(self) -> Reply | None:
        try:
            return self.body.ask(self.model, prose(340, 17))
        except ProviderRefused:
            if self.compact("reactive"):
                return self.body.ask(self.model, prose(340, 17))
            return None

    def turn(self, text: str) -> None:
        with self.step():
            self.body.begin(text)
        self.answer()

    def go_on(self) -> None:
        """The turn is still open: waking its loop is all that is needed."""

    # commands ------------------------------------------------------------------------------

    def do_clear_latch(self, context: CommandContext) -> dict[str, Any]:
        if self.latch is None:
            raise Refused("stale", "The turn's compaction latch is not set.")
        latch, self.latch = self.latch, None
        self.body.chat.latch_cleared(latch, "operator", command=context.id)
        before = self.body.history.total("prompt")
        if context.args.get("then") == "compact":
            self.compact("manual")
            self.want(self.go_on)
        return {"before": before, "after": self.body.history.total("prompt")}

    def do_compact_summarize(self, context: CommandContext) -> dict[str, Any]:
        before = self.body.history.total("prompt")
        if not self.compact("manual"):
            raise Refused("stale", "Nothing can be folded, or the turn's latch is set.")
        self.want(self.go_on)
        return {"before": before, "after": self.body.history.total("prompt")}
