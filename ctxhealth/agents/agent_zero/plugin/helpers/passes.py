"""The agent's own compression: each pass over a history above its limit, and what came of it.

``False`` of the agent means both "not needed" and "could not", ``True`` that something was moved,
not that anything shrank. So the facts are taken here: sizes before and after, each part, every
call of the utility model and how it ended. A pass over a history below its limit is none.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from . import host
from .books import Book, Build, show, station
from .failures import Failure, failure_of

_LEASE_S = 600
_MOST_STEPS = 60
#: Passes without a gain in one prompt build: from here on it is a loop, and few are told.
_LOOP = 8


@dataclass(eq=False)
class Pass:
    """One call of ``History.compress`` above the limit. Sizes in tokens."""

    book: Book
    agent: Any
    history: Any
    attempt: str | None
    before: int
    parts: dict[str, int]
    inline: bool
    began: float
    added: int
    calls: int = 0
    blank: int = 0
    failure: Failure | None = None
    emptied: bool = False
    written: int = 0
    steps: list[dict[str, Any]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    open: set[str] = field(default_factory=set)

    def called(self, text: str = "", failure: Failure | None = None) -> None:
        """A call of the utility model for this pass ended."""
        self.calls += 1
        self.failure = failure or self.failure
        self.written += host.count(text) if text else 0
        self.blank += failure is None and not text.strip()


_NOW: ContextVar[Pass | None] = ContextVar("ctxhealth_pass", default=None)
_BUSY_LOCK = threading.Lock()
_BUSY = "_ctxhealth_busy"


def current() -> Pass | None:
    """The pass that this call of the agent belongs to."""
    return _NOW.get()


def is_busy(history: Any) -> bool:
    """Whether a pass holds a part of this history across an await."""
    return bool(history.__dict__.get(_BUSY))


def hold(history: Any, by: int) -> None:
    with _BUSY_LOCK:
        history.__dict__[_BUSY] = history.__dict__.get(_BUSY, 0) + by


def begin(history: Any) -> Pass | None:
    """Called at the start of ``compress``; None where this is no pass worth telling."""
    now, agent = station(), getattr(history, "agent", None)
    if now is None or agent is None or not host.is_reported(agent.context):
        return None
    limit, before = host.limit_of(history), int(history.get_tokens())
    if limit is None or before <= limit:
        return None
    book = now.book(agent)
    inline = threading.current_thread().name != host.BACKGROUND
    made = Pass(
        book, agent, history, None, before, parts_of(history), inline, time.monotonic(), book.added
    )
    if _is_told(book.build if inline else None):
        made.attempt = book.chat.compaction_started(
            trigger="proactive", before=before, scope="history", lease_s=_LEASE_S,
            phase=_phase(agent, inline),
        )  # fmt: skip
    _NOW.set(made)
    return made


def end(made: Pass, result: Any = None, error: BaseException | None = None) -> None:
    """Called when ``compress`` came back or raised."""
    _NOW.set(None)
    for request in made.open:
        # The pass was killed under its calls, which never tell their end then.
        made.book.chat.model_failed(request, "cancelled", purpose="utility")
    after = int(made.history.get_tokens())
    meanwhile = made.book.added - made.added
    made.book.gained = after - meanwhile < made.before
    build = made.book.build if made.inline else None
    if build is not None:
        build.passes += 1
        build.no_gain = 0 if after - meanwhile < made.before else build.no_gain + 1
    if error is not None and made.failure is None:
        made.failure = failure_of(error)
    if made.attempt is None:
        return
    _tell(made, after, meanwhile, result, error, build)
    _latch(made, error)
    if build is None or build.no_gain < _LOOP:
        show(made.book, made.agent)


def _tell(made: Pass, after: int, meanwhile: int, result: Any, error: BaseException | None,
          build: Build | None) -> None:  # fmt: skip
    cancelled = error is not None and failure_of(error).error == "cancelled"
    made.book.chat.compaction_finished(
        made.attempt or "",
        "cancelled" if cancelled else _reported(result, error),
        before=made.before,
        after=after,
        scope="history",
        reason=_reason(made, after - meanwhile, error, build),
        steps=made.steps or None,
        summarizer=_summarizer(made, cancelled),
        meanwhile=meanwhile or None,
        emptied=made.emptied or None,
        parts={"before": made.parts, "after": parts_of(made.history)},
        ms=int((time.monotonic() - made.began) * 1000),
    )


def _reported(result: Any, error: BaseException | None) -> str:
    if error is not None:
        return f"raised {type(error).__name__}"
    return "compressed" if result else "not compressed"


def _reason(made: Pass, after: int, error: BaseException | None, build: Build | None) -> str | None:
    """Ours, in words: the agent gives none."""
    if error is not None:
        failure = made.failure or failure_of(error)
        return f"raised {failure.error}: {failure.detail}"[:400]
    loop = f" (pass {build.passes} of one prompt build)" if build and build.no_gain > 1 else ""
    if made.blank:
        return f"empty: {made.blank} of {made.calls} summaries had nothing in them{loop}"
    if after > made.before:
        return f"bloated: what came back was larger than what it stands for{loop}"
    if after == made.before:
        why = "no call, no gain" if not made.calls else "no gain"
        return f"{why}: nothing of the history became smaller{loop}"
    return None


def _summarizer(made: Pass, cancelled: bool) -> dict[str, Any]:
    utility = made.book.chat.facts.get("utility") or {}
    word = None
    if made.failure is not None and not cancelled and made.calls:
        word = made.failure.summarizer
    elif made.blank:
        word = "empty"
    told = {
        **utility,
        "calls": made.calls,
        "output": made.written if made.calls else None,
        "error": word,
        "detail": made.failure.detail if word and made.failure else None,
    }
    return {key: value for key, value in told.items() if value is not None}


def _latch(made: Pass, error: BaseException | None) -> None:
    """A failed background pass is kept, and the next prompt build awaits it and fails with it."""
    book = made.book
    if error is None and book.latch is not None:
        book.chat.latch_cleared(book.latch, "success")
        book.latch = None
    failed = error is not None and failure_of(error).error != "cancelled"
    if failed and not made.inline and book.latch is None:
        book.latch = book.chat.latch_set(
            scope="process", kind="summarizer" if made.calls else None, attempt=made.attempt,
            reason="the failed pass is kept; the next prompt build awaits it and fails with it",
            tokens=made.before, release={"success": True},
        )  # fmt: skip


# -- steps of a pass


def step_begun(made: Pass) -> tuple[int, int]:
    made.kinds = []
    return int(made.history.get_tokens()), made.calls


def step_ended(made: Pass, begun: tuple[int, int], result: Any, otherwise: str | None) -> None:
    """One part was worked on. ``otherwise``: the step where neither message nor topic was cut."""
    before, calls = begun
    name = made.kinds[-1] if made.kinds else otherwise
    if name is None or len(made.steps) >= _MOST_STEPS or not (result or made.calls > calls):
        return
    made.steps.append(
        {
            "step": name,
            "before": before,
            "after": int(made.history.get_tokens()),
            "calls": made.calls - calls,
        }
    )


def parts_of(history: Any) -> dict[str, int]:
    return {
        "bulks": int(history.get_bulks_tokens()),
        "topics": int(history.get_topics_tokens()),
        "current": int(history.get_current_topic_tokens()),
    }


def _is_told(build: Build | None) -> bool:
    """In a loop only passes 8, 16, 32 ... are told: it may go on for hours."""
    if build is None or build.no_gain < _LOOP:
        return True
    return build.no_gain & (build.no_gain - 1) == 0


def _phase(agent: Any, inline: bool) -> str:
    if not inline:
        return "mid_turn" if host.is_running(agent.context) else "between_turns"
    iteration = getattr(getattr(agent, "loop_data", None), "iteration", 0)
    return "mid_turn" if iteration and iteration > 0 else "pre_turn"
