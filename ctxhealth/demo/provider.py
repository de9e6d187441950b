"""A model that answers by rule: what a real provider would do at this size, without a model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol


@dataclass(frozen=True)
class Reply:
    """What came back. ``usage`` is in the provider's own tokens."""

    text: str = ""
    calls: tuple[str, ...] = ()
    finish: str = "stop"
    usage: dict[str, int | str] = field(default_factory=dict)
    unusable: bool = False

    @property
    def empty(self) -> bool:
        return not self.text and not self.calls


class Refused(Exception):
    """The provider refused a call; ``error`` is the class of the protocol's ``model.failed``."""

    def __init__(self, error: str, status: int, detail: str, **stated: int) -> None:
        super().__init__(detail)
        self.error, self.status, self.detail, self.stated = error, status, detail, stated


class ChatModel(Protocol):
    """Answers a prompt of a size (provider tokens) with the wished text or calls, or refuses."""

    def answer(self, prompt: int, wish: str, calls: tuple[str, ...] = ()) -> Reply: ...


def usage(prompt: int, output: int) -> dict[str, int | str]:
    return {"dialect": "openai", "input": prompt, "output": output}


@dataclass(frozen=True)
class Plain:
    """Answers as long as the prompt fits its window, and says so when it does not."""

    window: int

    def answer(self, prompt: int, wish: str, calls: tuple[str, ...] = ()) -> Reply:
        if prompt > self.window:
            raise overflow(self.window, prompt)
        output = max(8, len(wish) // 4) + 40 * len(calls)
        return Reply(text=wish, calls=calls, usage=usage(prompt, output))


@dataclass(frozen=True)
class LosesTheThread:
    """Above ``sane`` tokens it answers, but not in the form its agent can use."""

    window: int
    sane: int

    def answer(self, prompt: int, wish: str, calls: tuple[str, ...] = ()) -> Reply:
        if prompt <= self.sane:
            return Plain(self.window).answer(prompt, wish, calls)
        return Reply(text="{ thoughts: [", usage=usage(prompt, 6), unusable=True)


@dataclass(frozen=True)
class SilentWhenFull:
    """Takes a prompt right up to the window and answers 200 with no tokens."""

    window: int
    reserve: int

    def answer(self, prompt: int, wish: str, calls: tuple[str, ...] = ()) -> Reply:
        if prompt > self.window:
            raise overflow(self.window, prompt)
        if prompt > self.window - self.reserve:
            return Reply(usage=usage(prompt, 0))
        return Plain(self.window).answer(prompt, wish, calls)


def overflow(window: int, prompt: int) -> Refused:
    detail = f"maximum context length is {window} tokens, the request has {prompt} tokens"
    return Refused("overflow", 400, detail, stated_window=window, stated_prompt=prompt)


@dataclass
class Summarizer:
    """The utility model. ``trouble``: None, ``empty`` (answers nothing), ``quota`` or ``timeout``.

    ``heals_at`` is when the trouble ends, by the monotonic clock in seconds.
    """

    model: str
    window: int
    trouble: str | None = None
    heals_at: float = math.inf
    calls: int = 0

    def summarise(self, span: int) -> str:
        """A summary of ``span`` tokens, or "" when it answers nothing. Raises Refused."""
        self.calls += 1
        if monotonic() >= self.heals_at:
            self.trouble = None
        if self.trouble == "quota":
            raise Refused("quota", 402, "Payment required: the account has no credit left.")
        if self.trouble == "timeout":
            raise Refused("timeout", 0, "No answer within 60 s.")
        return "" if self.trouble == "empty" else f"Summary of {span:,} tokens of earlier work."
