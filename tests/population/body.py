"""One chat's context: what is in it, what a request of it costs, and how it is compacted."""

from __future__ import annotations

from random import Random
from typing import Any

from ctxhealth.wire import events as wire
from ctxhealth.wire.parts import (
    AddedItem,
    Content,
    SnapshotCurrent,
    SnapshotItem,
    SnapshotTopic,
    StepResult,
    Summarizer,
    Trigger,
    Utility,
)
from tests.population import distributions as drawn
from tests.population.runtimes import Model, Runtime
from tests.population.teller import Item, Teller, usage

Group = list[Item]
# What providers write at most where a request names no cap.
UNTOLD_OUTPUT = 8_192


class Chat:
    """``load``: what the next request's prompt would be by the provider's count."""

    def __init__(
        self, name: str, runtime: Runtime, random: Random, start: int, parent: str | None = None
    ) -> None:
        self.runtime, self.random, self.parent, self.born = runtime, random, parent, start
        self.teller = Teller(name, runtime, random, start)
        self.model: Model = random.choice(runtime.models)
        self.fixed = runtime.system or random.choice(drawn.FIRST_PROMPT)
        self.load = self.fixed
        self.dropped = 0
        self.groups: list[Group] = []
        self.children: list[Chat] = []
        self.grown = self.fixed
        # A provider that leaves usage out now and then; a chat with many pictures.
        self.usage_missing = 1 - runtime.usage or random.choice((0.0,) * 8 + (0.03, 0.2))
        self.images = random.choice((0.0,) * 7 + (0.02, 0.1, 0.3))
        self.point_share = random.choice(drawn.COMPACTS_AT)
        self.sends_again_as = random.choice(("the same", "another"))

    # facts

    def open(self) -> None:
        facts: dict[str, Any] = {"parent": self.parent, "title": "Work of the day"}
        if self.runtime.reserve is not None:
            facts["reserve"] = self.runtime.reserve
        if self.runtime.utility is not None:
            facts["utility"] = Utility(model=self.runtime.utility, window=128_000)
        if self.runtime.snapshots:
            facts["system"] = int(self.fixed * 0.6)
            facts["tools"] = self.fixed - int(self.fixed * 0.6)
        self.teller.say(wire.ChatOpened, **facts, **self.model_facts())

    def model_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"model": self.model.id, "provider": self.model.provider}
        if self.runtime.declares_window:
            facts["window"] = self.model.window
        if self.runtime.trigger == "ratio":
            facts["trigger"] = Trigger(
                ratio=self.runtime.trigger_share, inclusive=self.runtime.inclusive
            )
        elif self.runtime.trigger == "tokens":
            facts["trigger"] = Trigger(tokens=self.point, scope=self.runtime.scope)
        return facts

    def switch(self, model: Model) -> None:
        """Another model goes on with the same history and counts it its own way."""
        self.model = model
        self.load = int(self.load * self.random.uniform(0.92, 1.1))
        self.teller.say(wire.ChatUpdated, **self.model_facts())

    @property
    def point(self) -> int:
        """Where this agent compacts, in its trigger's scope."""
        if self.runtime.trigger == "undeclared":
            cap = self.most_output if self.runtime.tells_cap else 0
            return min(int(self.model.window * self.point_share), self.model.window - cap - 2_000)
        return int(self.model.window * self.runtime.trigger_share)

    @property
    def history(self) -> int:
        return sum(item.own for group in self.groups for item in group)

    @property
    def measured(self) -> int:
        return self.history if self.runtime.scope == "history" else self.load

    @property
    def room(self) -> int:
        """To the budget, with space for one more step."""
        reserve = self.runtime.reserve or 16_384
        return self.model.window - reserve - self.load

    @property
    def most_output(self) -> int:
        told = self.runtime.tells_cap or self.runtime.read_only
        return self.model.max_output or UNTOLD_OUTPUT if told else UNTOLD_OUTPUT

    @property
    def space(self) -> int:
        """To the window: no agent adds what cannot be held at all."""
        return self.model.window - 2_000 - self.load

    # growth

    def put(self, item: Item, *, new_group: bool = False) -> None:
        if new_group or not self.groups:
            self.groups.append([])
        self.groups[-1].append(item)
        self.load += item.tokens
        self.grown += item.tokens

    def drop_reasoning(self, tokens: int) -> None:
        """What the agent leaves out by itself: the prompt falls, no item was removed."""
        least = self.fixed + sum(i.tokens for g in self.groups[-3:] for i in g)
        left = max(min(self.load, least), self.load - tokens)
        self.dropped += self.load - left
        self.load = left

    # requests

    def request(self, turn: str) -> tuple[str, int]:
        """Sends a request, again where it fails; returns its id and the output to come.

        A transcript tells a request together with its reply, and failures not at all.
        """
        request = self.teller.name("r")
        for _ in range(0 if self.runtime.read_only else self.failures()):
            self._send(request)
            self.teller.wait(self.random.uniform(1, 90))
            error = self.random.choice(("rate_limit", "network", "timeout", "provider"))
            self.teller.say(wire.ModelFailed, request=request, error=error)
            self.teller.wait(self.random.uniform(1, 60))
            if self.sends_again_as == "another":
                request = self.teller.name("r")
        if not self.runtime.read_only:
            self._send(request)
        output = int(drawn.REPLY.draw(self.random))
        return request, min(output, self.most_output)

    def failures(self) -> int:
        return self.random.choice((1, 1, 1, 2, 3)) if self.random.random() < 0.015 else 0

    def _send(self, request: str) -> None:
        items = [item for group in self.groups for item in group]
        pictures = sum(item.kind == "image" for item in items)
        size = sum(item.bytes for item in items)
        size += int((self.fixed - self.dropped) * self.teller.bytes_a_token)
        cap = self.most_output if self.runtime.tells_cap else None
        self.teller.sent(request, self.load, size, pictures, self.grown, cap)
        self.grown = 0

    def reply(self, request: str, output: int, calls: int, thinking: bool) -> None:
        """The reply arrives; its usage may be missing."""
        speed = self.random.uniform(*drawn.TOKENS_A_SECOND)
        self.teller.wait(drawn.FIRST_TOKEN_S.draw(self.random) + output / speed)
        if self.runtime.read_only:
            self._send(request)
        told = None
        if self.random.random() >= self.usage_missing:
            told = usage(self.random, self.model, self.load, output)
        text = 0 if calls and self.random.random() < 0.4 else max(1, output * 3)
        content = Content(
            text_chars=text, tool_calls=calls, thinking_chars=output if thinking else 0
        )
        finish = "tool_calls" if calls else "stop"
        self.teller.replied(request, self.model, told, content, finish)

    # compaction

    def compact(self, trigger: str, phase: str) -> None:
        """An ordinary compaction with real relief; the last group stays as it is."""
        before, load = self.measured, self.load
        attempt = self.teller.name("a")
        self.teller.say(
            wire.CompactionStarted, attempt=attempt, trigger=trigger, phase=phase,
            scope=self.runtime.scope, before=before,
        )  # fmt: skip
        summary = self.random.randint(900, 2_600)
        self._summarise(attempt, summary)
        removed, added = self._fold(summary)
        fields: dict[str, Any] = {}
        if self.runtime.tells_after:
            fields["after"] = self._after()
        if self.runtime.scope == "history":
            steps = [StepResult(step="topics_to_bulk", before=before, after=self.history, calls=1)]
            fields["steps"] = steps
        self.teller.say(
            wire.CompactionFinished, attempt=attempt, trigger=trigger, reported="compacted",
            scope=self.runtime.scope, before=before, removed=removed, added=[added],
            summarizer=Summarizer(
                model=self.runtime.utility, calls=1, input=load, output=summary
            ), **fields,
        )  # fmt: skip
        if self.runtime.snapshots:
            self.snapshot()

    def _after(self) -> int:
        """What the agent believes: it has no provider's number yet."""
        if self.runtime.scope == "history":
            return self.history
        return int(self.load * self.random.uniform(0.9, 1.08))

    def _summarise(self, attempt: str, summary: int) -> None:
        request = self.teller.name("s")
        tells = self.runtime.utility is not None
        if tells:
            self.teller.say(wire.RequestSent, request=request, purpose="utility", attempt=attempt)
        self.teller.wait(self.random.uniform(4, 30) + summary / self.random.uniform(40, 90))
        if tells:
            self.teller.say(
                wire.ModelReplied, request=request, purpose="utility",
                content=Content(text_chars=summary * 4),
            )  # fmt: skip

    def _fold(self, summary: int) -> tuple[list[str], AddedItem]:
        """What is left is a summary, the newest groups and, where known, real pieces of old."""
        share = self.random.choice(drawn.LEAVES)
        if self.runtime.scope == "history":
            share = self.random.uniform(0.55, 0.8)
        kept: list[Group] = self.groups[-1:]
        anchor = self._anchor(kept)
        target = int(self.load * share) - self.fixed - summary
        size = sum(item.tokens for group in kept for item in group)
        for group in reversed(self.groups[:-1]):
            size += sum(item.tokens for item in group)
            if size > target:
                break
            kept.insert(0, group)
        gone = [item for group in self.groups[: len(self.groups) - len(kept)] for item in group]
        if anchor in gone:
            gone.remove(anchor)
            kept.insert(0, [anchor])
        self.groups = kept
        self.dropped = 0
        self.load = self.fixed + sum(item.tokens for group in kept for item in group)
        name = self.teller.name("m")
        item = Item(name, "user", "summary", summary, self.teller.count(summary), summary * 4)
        self.groups.insert(0, [item])
        self.load += summary
        self.grown = self.load
        return (
            [item.id for item in gone],
            AddedItem(id=name, kind="summary", tokens=item.own),
        )

    def _anchor(self, kept: list[Group]) -> Item | None:
        """The last user message; what a transcript calls compacted may lose it, others keep it."""
        if self.runtime.read_only:
            return None
        users = [i for g in self.groups for i in g if i.role == "user" and i.kind == "text"]
        return users[-1] if users else None

    @property
    def foldable(self) -> int:
        """What a compaction could take out now."""
        return sum(item.tokens for group in self.groups[:-1] for item in group)

    def look(self) -> None:
        """Nothing to do: some agents say so."""
        attempt = self.teller.name("a")
        self.teller.say(
            wire.CompactionFinished, attempt=attempt, trigger="proactive", reported="not_needed",
            scope=self.runtime.scope, before=self.measured, after=self.measured,
            summarizer=Summarizer(calls=0),
        )  # fmt: skip

    def snapshot(self) -> None:
        """The history's structure, every group a topic, the newest the current one."""
        topics = [
            SnapshotTopic(id=group[0].id, tokens=sum(i.own for i in group), messages=len(group))
            for group in self.groups[:-1]
        ]
        last = self.groups[-1] if self.groups else []
        order = [
            SnapshotItem(
                id=i.id, role=i.role, kind=i.kind, tokens=i.own, calls=i.calls, answers=i.answers
            )
            for group in self.groups[-200:] for i in group
        ]  # fmt: skip
        whole = len(self.groups) <= 200
        self.teller.say(
            wire.HistorySnapshot, revision=self.teller.name("v"), history=self.history,
            topics=topics, order=order if whole else None,
            current=SnapshotCurrent(tokens=sum(i.own for i in last), messages=len(last)),
        )  # fmt: skip
