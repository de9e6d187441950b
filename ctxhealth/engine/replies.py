"""Replies without content: what counts as one, why it is empty, and what the agent does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from .reading import Reader

EmptyCause = Literal["window_full", "output_cap", "unknown", "provider_empty"]
Action = Literal["pass", "recover_and_retry", "warn"]

CONTINUATION = "The last reply was empty. Continue with the task and answer the user."


@dataclass(frozen=True)
class Reply:
    """What came back from the chat model. ``prompt`` and ``completion`` are the provider's counts.

    ``None`` is unknown. ``text`` is the visible text, ``thinking`` and ``data`` say that there is
    some, ``calls`` counts tool calls. ``synthetic`` marks a row that no model wrote.
    """

    text: str = ""
    calls: int = 0
    thinking: bool = False
    data: bool = False
    finish: str | None = None
    prompt: int | None = None
    completion: int | None = None
    synthetic: bool = False

    @property
    def is_meaningful(self) -> bool:
        """Whether the loop can go on with it. Thinking alone counts, though no user sees it."""
        return self.shows_something or self.calls > 0 or self.thinking

    @property
    def shows_something(self) -> bool:
        """Whether the user sees anything."""
        return bool(self.text.strip()) or self.data


def empty_cause(reply: Reply, budget: int | None) -> EmptyCause | None:
    """Return why a reply is empty, never guessed; ``None`` where it is not, or is no reply.

    A reply of thinking alone is only empty where the output cap or the window ended it.
    """
    capped = reply.finish in ("length", "max_tokens")
    if reply.synthetic or (reply.is_meaningful and not (_thinks_only(reply) and capped)):
        return None
    if budget is not None and reply.prompt is not None and reply.prompt >= budget:
        return "window_full"
    if capped and reply.thinking:
        return "output_cap"
    if reply.prompt is None:
        return "unknown"
    return "provider_empty"


def _thinks_only(reply: Reply) -> bool:
    return reply.thinking and not reply.shows_something and not reply.calls


@dataclass(frozen=True)
class Episode:
    """Empty replies in a row, and whether this episode has used its one retry."""

    empties: int = 0
    retried: bool = False

    def to_dict(self) -> dict[str, object]:
        return {"empties": self.empties, "retried": self.retried}

    @classmethod
    def from_dict(cls, data: object) -> Episode:
        """Read what ``to_dict`` wrote. Raises HistoryError naming the field and the reason."""
        read = Reader(data, "episode")
        return cls(read.size("empties", 0), read.flag("retried", False))


@dataclass(frozen=True)
class Verdict:
    """What to do with a reply.

    ``recover_and_retry``: force a compaction (its failure changes nothing here), append
    ``continuation`` as a notice of the framework, ask again. ``warn``: show ``warning`` to the
    user and end the turn.
    """

    action: Action
    continuation: str | None = None
    warning: str | None = None


_PASS = Verdict("pass")


def judge_reply(
    episode: Episode, reply: Reply, *, waiting_user: bool = True
) -> tuple[Episode, Verdict]:
    """Return the episode after a reply and what to do about it.

    The first empty reply is retried once, the second is a visible warning; a meaningful reply ends
    the episode. Without a user message to answer (``waiting_user`` False) a retry has nothing to
    ask, so the warning comes at once. A synthetic row is no reply and changes nothing.
    """
    if reply.synthetic:
        return episode, _PASS
    if reply.is_meaningful:
        return Episode(), _PASS
    counted = replace(episode, empties=episode.empties + 1)
    if waiting_user and not episode.retried:
        return replace(counted, retried=True), Verdict("recover_and_retry", CONTINUATION)
    warning = empty_warning(counted.empties, reply)
    return replace(counted, retried=False), Verdict("warn", warning=warning)


def empty_warning(empties: int, reply: Reply) -> str:
    """Return the visible warning, with the provider's counts where they are known."""
    times = "an empty reply" if empties == 1 else f"{empties} empty replies in a row"
    numbers = ", ".join(
        f"{name} tokens {'unknown' if value is None else format(value, ',')}"
        for name, value in (("prompt", reply.prompt), ("completion", reply.completion))
    )
    return (
        f"The model gave {times} ({numbers}). The context may be full or the provider may be "
        "failing; try again, compact the chat or start a new one."
    )
