"""A diagnosis as text: state and headline, findings with advice, latches, attempts, numbers."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator

from ctxhealth.core.findings.judge import counted
from ctxhealth.core.model import (
    Advice,
    AttemptView,
    ChatDetail,
    ChatSummary,
    FindingView,
    LatchView,
    Relief,
)
from ctxhealth.core.state import ChatState
from ctxhealth.core.states import OUTCOME_META, RELIEF_META, SEVERITY_META, SOURCE_META, STATE_META
from ctxhealth.core.wording import clip, clock, number, plural

_ATTEMPTS = 12
_LEAST_WIDTH, _MOST_WIDTH = 60, 110


def diagnosis(name: str, state: ChatState, page: ChatDetail, attempts: list[AttemptView]) -> str:
    """Everything the core says of one chat, for a terminal."""
    lines = [*_head(name, page), *_findings(state, page), *_latches(page.latches)]
    lines += [*_attempts(page.summary, attempts), *_numbers(page.summary)]
    return "\n".join(lines) + "\n"


def _head(name: str, page: ChatDetail) -> Iterator[str]:
    severity = page.summary.severity
    word = f" ({SEVERITY_META[severity].label.lower()})" if severity is not None else ""
    title = f", {clip(page.summary.title, 60)}" if page.summary.title else ""
    yield f"Chat {name}{title}: {STATE_META[page.summary.state].label}{word}"
    yield from _wrapped(page.headline, "  ")


def _findings(state: ChatState, page: ChatDetail) -> Iterator[str]:
    if not page.findings:
        return
    yield ""
    yield "Findings"
    told = set(counted(state))
    for view in page.findings:
        yield from _finding(view, view.code in told)


def _finding(view: FindingView, counts: bool) -> Iterator[str]:
    label = SEVERITY_META[view.severity].label
    times = f", {view.count:,} times" if view.count > 1 else ""
    yield f"  {label}: {view.title} ({view.code}), since {clock(view.since)}{times}"
    yield from _wrapped(view.sentence, "    ")
    if view.suppressed_by is not None:
        yield f"    Explained by {view.suppressed_by}."
    elif not counts:
        yield "    From before the command; waits for what the next request shows."
    else:
        yield from _advice(view.recommended, view.discouraged)


def _advice(do: Iterable[Advice], leave: Iterable[Advice]) -> Iterator[str]:
    for advice in do:
        missing = f" (not possible now: {advice.why})" if not advice.available else ""
        yield from _wrapped(f"{advice.text}{missing}", "    Do:  ")
    for advice in leave:
        yield from _wrapped(f"{advice.action.replace('_', ' ')}. {advice.text}", "    Not: ")


def _latches(latches: Iterable[LatchView]) -> Iterator[str]:
    shown = list(latches)
    if not shown:
        return
    yield ""
    yield "Latches"
    for latch in shown:
        word = {True: "justified", False: "not justified", None: "not known whether justified"}
        yield f"  {latch.latch} ({latch.kind}, scope {latch.scope}): {word[latch.justified]}"
        yield from _wrapped(f"{latch.why} Lapses: {latch.lapses}.", "    ")
        yield from _advice(latch.recommended, latch.discouraged)


def _attempts(row: ChatSummary, attempts: list[AttemptView]) -> Iterator[str]:
    if not attempts:
        return
    yield ""
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in _most(row.outcomes))
    yield f"Compactions: {row.compactions:,}{f' ({counts})' if counts else ''}"
    earlier = len(attempts) - _ATTEMPTS
    if earlier > 0:
        yield f"  {earlier:,} earlier ones are left out"
    for view in attempts[-_ATTEMPTS:]:
        yield from _wrapped(_attempt(view), "  ")


def _most(outcomes: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(outcomes.items(), key=lambda entry: (-entry[1], entry[0]))


def _attempt(view: AttemptView) -> str:
    at = view.finished_at if view.finished_at is not None else view.started_at
    parts = [f"{clock(at)} " if at is not None else "", f"{view.trigger}: "]
    parts.append(OUTCOME_META[view.outcome].label)
    if view.error_class is not None:
        parts.append(f" ({view.error_class})")
    if view.before is not None or view.after is not None:
        parts.append(f", {number(view.before)} to {number(view.after)} {view.scope} tokens")
        if view.after_scope not in (None, view.scope):
            parts.append(f" of the {view.after_scope}")
    calls = view.summarizer.calls if view.summarizer is not None else None
    if calls is not None:
        parts.append(f", {plural(calls, 'summarizer call')}")
    relief = RELIEF_META[view.relief].label.lower()
    parts.append(f", {'relief ' * (view.relief is Relief.UNCONFIRMED)}{relief}")
    return "".join(parts)


def _numbers(row: ChatSummary) -> Iterator[str]:
    yield ""
    yield "Numbers"
    load, window, trigger = row.load, row.window, row.trigger
    doubt = "" if load.reliable else f", cannot be right: {load.reason}"
    yield f"  load      {number(load.value)} ({SOURCE_META[load.source].label.lower()}){doubt}"
    yield f"  window    {number(window.value)} ({window.source})"
    for candidate in window.candidates if len(window.candidates) > 1 else ():
        yield f"              {candidate.source} {number(candidate.value)} {candidate.detail}"
    assumed = " (assumed)" if row.reserve_assumed and row.reserve is not None else ""
    yield f"  reserve   {number(row.reserve)}{assumed}, budget {number(row.budget)}"
    sign = ">=" if trigger.inclusive else ">"
    yield f"  trigger   {trigger.scope} {sign} {number(trigger.value)} ({trigger.source})"
    if row.history.value is not None or row.history.limit is not None:
        yield f"  history   {number(row.history.value)}, limit {number(row.history.limit)}"
    if row.calibration is not None:
        yield f"  counts    {row.calibration:.2f} of what the provider counts"
    yield f"  so far    {plural(row.requests, 'request')}, {plural(row.turns, 'turn')}"


def _wrapped(text: str, indent: str) -> list[str]:
    width = max(_LEAST_WIDTH, min(_MOST_WIDTH, shutil.get_terminal_size().columns))
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=" " * len(indent),
        break_long_words=False,
    )  # fmt: skip
