"""One moment of a review: the chat as of one event, and the ways from it to others; pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ctxhealth.core.model import ChatDetail, ChatSummary, FindingView, LatchView, Severity
from ctxhealth.store.queries import EventRow
from ctxhealth.store.queries.ranges import Range
from ctxhealth.web import states
from ctxhealth.web.events import EventLine, line_of
from ctxhealth.web.format import clock, number, percent, words
from ctxhealth.web.strip import Strip, strip_of

_GRAVE = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True)
class Moment:
    """The chat after event ``seq``. ``number`` counts it within the range, from 1 to ``of``.

    ``line`` is the event itself, None where retention took it. ``explained`` findings are told
    by another one.
    """

    seq: int
    at: int
    number: int
    of: int
    line: EventLine | None
    detail: ChatDetail
    strip: Strip
    tone: str
    room: str
    findings: tuple[FindingView, ...]
    explained: int
    latches: tuple[LatchView, ...]

    @property
    def summary(self) -> ChatSummary:
        return self.detail.summary

    @property
    def says(self) -> str:
        """The moment in one sentence, for the slider."""
        event = f": {words(self.line.row.type.replace('.', ' '))}" if self.line else ""
        state = states.standing(self.summary).label
        return f"{clock(self.at, self.at)} UTC, event {self.seq}{event}; {state}"


@dataclass(frozen=True, slots=True)
class Step:
    """A way to another moment; ``seq`` None where there is none in the range."""

    name: str
    label: str
    icon: str
    seq: int | None
    forward: bool = False


def moment_of(detail: ChatDetail, event: EventRow | None, at: int, within: Range) -> Moment:
    ranked = sorted(detail.findings, key=lambda f: (_GRAVE.index(f.severity), f.since))
    seq = detail.chat_seq
    return Moment(
        seq=seq,
        at=event.at if event else at,
        number=seq - within.first + 1,
        of=within.last - within.first + 1,
        line=line_of(event) if event else None,
        detail=detail,
        strip=strip_of(detail.summary, detail.structure.blocks),
        tone=states.standing(detail.summary).tone,
        room=_room(detail.summary),
        findings=tuple(f for f in ranked if not f.suppressed_by),
        explained=sum(1 for f in ranked if f.suppressed_by),
        latches=tuple(latch for latch in detail.latches if latch.cleared_at is None),
    )


def steps_of(seq: int, within: Range, marks: Sequence[tuple[int, int]]) -> tuple[Step, ...]:
    """Both ends, the marks and the events on either side of ``seq``.

    ``marks`` are (event, ms) in the order of the log, as the axis draws them.
    """
    seqs = [mark for mark, _ in marks if within.first <= mark <= within.last]
    here, beyond = bisect_left(seqs, seq), bisect_right(seqs, seq)
    back, on = seq > within.first, seq < within.last
    return (
        Step("first", "First", "chevron-first", within.first if back else None),
        Step("mark-before", "Earlier mark", "chevrons-left", seqs[here - 1] if here else None),
        Step("before", "Earlier event", "chevron-left", seq - 1 if back else None),
        Step("after", "Later event", "chevron-right", seq + 1 if on else None, True),
        Step("mark-after", "Later mark", "chevrons-right",
             seqs[beyond] if beyond < len(seqs) else None, True),
        Step("last", "Last", "chevron-last", within.last if on else None, True),
    )  # fmt: skip


def _room(summary: ChatSummary) -> str:
    """What the strip shows, in figures; each one named."""
    said = []
    load, budget = summary.load.value, summary.budget
    if budget is not None:
        said.append(f"{percent(load, budget)} of {number(budget)} usable")
    history = summary.history
    if history.value is not None:
        limit = f" of {number(history.limit)}" if history.limit is not None else ""
        said.append(f"history {number(history.value)}{limit}")
    if summary.window.value is not None:
        said.append(f"window {number(summary.window.value)}")
    return " · ".join(said)
