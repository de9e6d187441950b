"""Turns, pauses and the everyday mishaps of one chat's day."""

from __future__ import annotations

from ctxhealth.wire import events as wire
from ctxhealth.wire.parts import Content, Usage
from tests.population import distributions as drawn
from tests.population.body import Chat
from tests.population.runtimes import Model

NEXT_STEP = 24_000
TOOLS = ("bash", "read_file", "grep", "edit", "web_fetch")


class Day:
    """Drives ``chat`` until ``end``; ``longest_pause`` in seconds is None for people."""

    def __init__(self, chat: Chat, *, end: int, longest_pause: float | None) -> None:
        self.chat, self.end, self.longest_pause = chat, end, longest_pause
        self.random, self.teller = chat.random, chat.teller
        self.by_hand = longest_pause is None
        self.switches = self.random.random() < 0.15
        self.cancels = drawn.CANCELLED if self.by_hand else 0.0
        self.sub_agents = self.random.choice((0.0,) * 6 + (0.02, 0.06))
        self.folds_when_idle = self.random.random() < 0.1
        self.turn = ""

    def live(self) -> None:
        self.chat.open()
        while self.teller.now < self.end:
            self.take_turn()
            self.between_turns()
        self.teller.told = [entry for entry in self.teller.told if entry.at < self.end]

    # one turn

    def take_turn(self) -> None:
        self.turn = self.teller.name("t")
        self.teller.say(wire.TurnStarted, turn=self.turn, kind="user" if self.by_hand else "task")
        self.say_something()
        if self.chat.runtime.tells_not_needed and self.chat.measured < self.chat.point:
            self.chat.look()
        steps = max(1, round(drawn.REQUESTS_A_TURN.draw(self.random)))
        for step in range(steps):
            if not self.one_step(first=step == 0, last=step == steps - 1):
                self.end_turn("cancelled")
                return
        self.end_turn("answered")

    def end_turn(self, outcome: str) -> None:
        self.teller.say(wire.TurnEnded, turn=self.turn, outcome=outcome)
        if self.chat.runtime.snapshots:
            self.chat.snapshot()

    def say_something(self) -> None:
        tokens = max(1, int(drawn.USER_MESSAGE.draw(self.random)))
        self.chat.put(self.teller.item("user", "text", tokens, turn=self.turn), new_group=True)
        if self.random.random() < self.chat.images:
            tokens = self.random.randint(700, 1_700)
            self.chat.put(self.teller.image(tokens, self.turn))

    def one_step(self, *, first: bool, last: bool) -> bool:
        """One request and what its reply asks for; False when the user broke it off."""
        self.compact_where_needed(first)
        request, output = self.chat.request(self.turn)
        if self.random.random() < self.cancels:
            self.broken_off(request)
            return False
        calls = 0 if last else self.random.choice(drawn.CALLS)
        thinking = self.random.random() < 0.5
        self.chat.reply(request, output, calls, thinking)
        self.into_history(output, calls, thinking)
        return True

    def compact_where_needed(self, first: bool) -> None:
        chat = self.chat
        above = chat.measured >= chat.point if chat.runtime.inclusive else (
            chat.measured > chat.point
        )  # fmt: skip
        waits = chat.runtime.between_turns and not first
        if (above and not waits) or (waits and chat.room < self.next_step()):
            chat.compact("proactive", "pre_turn" if first else "mid_turn")

    def next_step(self) -> int:
        """What an agent that waits for a turn's end still leaves room for."""
        return min(NEXT_STEP, self.chat.model.window // 12)

    def broken_off(self, request: str) -> None:
        """Pressed Escape: agents differ in what they say about the request."""
        self.teller.wait(self.random.uniform(1, 20))
        said = self.random.random()
        if self.chat.runtime.read_only:
            return
        if said < 0.5:
            self.teller.say(wire.ModelFailed, request=request, error="cancelled")
        elif said < 0.8:
            zero = Usage(dialect=self.chat.model.dialect, input=0, output=0)
            content = Content(text_chars=self.random.randint(1, 200))
            self.teller.replied(request, self.chat.model, zero, content, "aborted")
        # The others say nothing more of it.

    # what a reply leaves behind

    def into_history(self, output: int, calls: int, thinking: bool) -> None:
        results, dropped = self.sizes(output, calls)
        ids = [self.teller.name("c") for _ in range(calls)]
        said = output // 2 if thinking else output
        chat = self.chat
        chat.put(
            self.teller.item(
                "assistant", "tool_call" if calls else "text", said, turn=self.turn,
                calls=ids or None,
            ),
            new_group=bool(calls),
        )  # fmt: skip
        chat.drop_reasoning(dropped)
        for call, tokens in zip(ids, results, strict=True):
            name = self.random.choice(TOOLS)
            self.use_tool(name)
            item = self.teller.item(
                "tool", "tool_result", tokens, turn=self.turn, answers=[call], name=name
            )
            chat.put(item)

    def sizes(self, output: int, calls: int) -> tuple[list[int], int]:
        """Half of the steps by the sizes of tool results, half by the growth of prompts."""
        results = [max(1, int(drawn.TOOL_RESULT.draw(self.random))) for _ in range(calls)]
        dropped = 0
        if calls and self.random.random() < 0.5:
            growth = int(drawn.GROWTH.draw(self.random))
            dropped = max(0, -growth)
            left = max(calls, growth - output)
            whole = sum(results)
            results = [max(1, left * size // whole) for size in results]
        most = self.chat.runtime.cap or self.chat.space - output
        most = max(1, most // max(1, calls))
        return [min(size, most) for size in results], dropped

    def use_tool(self, name: str) -> None:
        if self.random.random() < self.sub_agents and self.chat.parent is None:
            self.hand_over()
        else:
            self.teller.wait(drawn.TOOL_S.draw(self.random))

    def hand_over(self) -> None:
        """A sub-agent works in a context of its own; the call stays open until it is done."""
        chat = self.chat
        name = f"{self.teller.chat}:{self.teller.name('agent')}"
        child = Chat(name, chat.runtime, self.random, self.teller.now, self.teller.chat)
        child.model = chat.model
        child.fixed = child.load = min(child.fixed, 17_088)
        child.open()
        Day(child, end=self.end, longest_pause=0.0).take_turn()
        child.teller.say(wire.ChatClosed, reason="the sub-agent returned")
        chat.children.append(child)
        self.teller.now = max(self.teller.now, child.teller.now)

    # between turns

    def between_turns(self) -> None:
        pause = drawn.BETWEEN_TURNS_S.draw(self.random)
        if self.longest_pause is not None:
            pause = min(pause, self.longest_pause)
        share = self.chat.load / self.chat.model.window
        if self.chat.foldable < self.chat.load / 4:
            share = 0.0
        if self.by_hand and drawn.BY_HAND_AT[0] < share and self.random.random() < 0.03:
            self.teller.wait(pause / 2)
            self.chat.compact("manual", "between_turns")
        elif self.folds_when_idle and pause > 1_800 and share > 0.4:
            self.teller.wait(900)
            self.chat.compact("idle", "between_turns")
        self.teller.wait(pause)
        if self.switches and self.random.random() < 0.1:
            self.switch_model()

    def switch_model(self) -> None:
        others = [m for m in self.chat.runtime.models if m is not self.chat.model]
        fitting = [m for m in others if self._fits(m)]
        if fitting:
            self.chat.switch(self.random.choice(fitting))

    def _fits(self, model: Model) -> bool:
        return self.chat.load < 0.6 * model.window
