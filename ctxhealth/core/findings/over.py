"""Prompts that are, or will be, too large."""

from __future__ import annotations

from ctxhealth.core.advice import against, manual
from ctxhealth.core.findings.definition import (
    CRITICAL,
    WARNING,
    Definition,
    Facts,
    Verdict,
    fallback_advice,
    int_of,
    text_of,
)
from ctxhealth.core.latching import had_its_chance, is_pressed
from ctxhealth.core.limits import overdue_line
from ctxhealth.core.meter import load_now, projection
from ctxhealth.core.model import Advice, Relief, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import number


def _over_window(state: ChatState, t: Thresholds, at: int) -> Verdict:
    requests, window = state.requests, state.limits.window
    if requests.overflow:
        limit = _largest_prompt(state, requests.overflow_prompt)
        return (CRITICAL, "refused", requests.overflow_prompt, limit, requests.overflow_output)
    load = load_now(state)
    if load is None or window is None or load <= window or state.meter.source == "provider":
        return None
    if refused_unsent(state, load):
        return (WARNING, "unsent", load, window, None)
    return (CRITICAL, state.meter.source, load, window, None)


def refused_unsent(state: ChatState, load: int) -> bool:
    """The load is what the agent itself counted and refused: visible, and nothing was sent.

    Where that keeps the user from an answer again and again, their turns fail, which is critical.
    """
    return state.meter.source == "agent" and state.requests.guard_count == load


def _largest_prompt(state: ChatState, prompt: int | None) -> int | None:
    """What refused it: the window, or less where a prompt may only use a part of that."""
    limits = state.limits
    most = state.facts.max_input if state.facts.max_input is not None else limits.max_input
    if prompt is not None and most is not None and limits.window is not None:
        return most if most < prompt <= limits.window else limits.window
    return limits.window


def _say_over_window(facts: Facts) -> str:
    source, prompt, window, output = facts
    if source == "refused":
        if output and prompt is not None and window is not None and _fits_alone(facts):
            return _say_with_output(int_of(prompt), int_of(output), int_of(window))
        text = "the provider refused the request: the context is too large"
        if prompt is not None:
            text += f", {number(int_of(prompt))}"
            text += f" of {number(int_of(window))} tokens" if window is not None else " tokens"
        return text + "."
    over = int_of(prompt) - int_of(window)
    if source == "unsent":
        return (
            f"the agent did not send a prompt of {number(int_of(prompt))} by its own count, "
            f"{number(over)} above the window of {number(int_of(window))}."
        )
    return (
        f"the prompt of {number(int_of(prompt))} is {number(over)} above the window of "
        f"{number(int_of(window))} ({text_of(source)} count)."
    )


def _fits_alone(facts: Facts) -> bool:
    """The prompt would fit the window; with the answer asked for it does not."""
    prompt, window, output = (int_of(fact) for fact in facts[1:4])
    return prompt <= window < prompt + output


def _say_with_output(prompt: int, output: int, window: int) -> str:
    return (
        f"the provider refused the request: {number(prompt)} tokens and {number(output)} for the "
        f"answer are {number(prompt + output - window)} above the window of {number(window)}."
    )


def _over_budget(state: ChatState, t: Thresholds, at: int) -> Verdict:
    load, limits = load_now(state), state.limits
    if load is None or limits.budget is None or load <= limits.budget:
        return None
    if limits.window is not None and load > limits.window:
        return None
    if state.compactions.running and state.meter.source == "agent":
        # What a running attempt was begun with was never sent.
        return None
    answered = state.replies.empty_row == 0 and not state.requests.overflow
    mild = (limits.reserve_assumed and answered) or refused_unsent(state, load)
    return (
        WARNING if mild else CRITICAL,
        load,
        limits.budget,
        limits.window,
        limits.reserve,
        limits.reserve_assumed,
    )


def _say_over_budget(facts: Facts) -> str:
    load, budget, window, reserve, assumed = facts
    over = int_of(load) - int_of(budget)
    kind = "an assumed" if assumed else "a"
    return (
        f"the prompt of {number(int_of(load))} is {number(over)} above the budget of "
        f"{number(int_of(budget))} (window {number(int_of(window))} less {kind} reserve of "
        f"{number(int_of(reserve))})."
    )


def _projected(state: ChatState, t: Thresholds, at: int) -> Verdict:
    budget = state.limits.budget
    if budget is None:
        return None
    ahead = projection(state)
    if ahead is None or ahead <= budget:
        return None
    load = load_now(state)
    if load is not None and (load > budget or _folds_first(state, t, ahead, budget)):
        return None
    return (WARNING, ahead, budget, load, state.limits.reserve_assumed)


def _folds_first(state: ChatState, t: Thresholds, ahead: int, budget: int) -> bool:
    """The agent may still compact before it sends: it was not due before, or it always has.

    Until a request above the budget goes out. What is larger than half the budget by itself is
    not folded away: it was only just added.
    """
    compactions, meter, load = state.compactions, state.meter, load_now(state) or 0
    if compactions.no_relief or compactions.summarizer_row or state.latches.open:
        return False
    if ahead - load > budget / 2:
        return False
    base = load - meter.added_before
    for sent in state.requests.open.values():
        if not sent.utility and not sent.over and base + sent.added > budget:
            return False
    if any(view.relief is Relief.RELIEVED for view in compactions.recent):
        return True
    if state.limits.trigger_source == "declared":
        return not (is_pressed(state) and had_its_chance(state))
    line = overdue_line(state, t, t.overdue_close)
    return line is not None and load <= line


def _say_projected(facts: Facts) -> str:
    ahead, budget, load, assumed = facts
    start = f"{number(int_of(load))} + " if load is not None else "after the compaction, with "
    added = int_of(ahead) - int_of(load)
    made = f"{start}{number(added)} added since" if load is not None else f"{start}new items"
    kind = "budget (its reserve is assumed)" if assumed else "budget"
    return (
        f"the next prompt will be about {number(int_of(ahead))} ({made}), above the {kind} of "
        f"{number(int_of(budget))}."
    )


def _truncates(state: ChatState, t: Thresholds, at: int) -> Verdict:
    meter = state.meter
    if meter.identical >= t.identical_requests:
        grown = meter.identical_added - meter.identical_from
        return (CRITICAL, "identical", meter.identical, meter.value, (meter.value or 0) + grown)
    if meter.truncated:
        return (CRITICAL, "bytes", 1, meter.value, meter.expected)
    return None


def _say_truncates(facts: Facts) -> str:
    form, count, value, sent = facts
    if form == "identical":
        grew = f"the prompt grew to about {number(int_of(sent))}"
        if sent == value:
            grew = "items of unknown size were added to the prompt"
        return (
            f"{number(int_of(count))} requests counted exactly {number(int_of(value))} tokens "
            f"while {grew}: the provider cuts it silently."
        )
    return (
        f"the provider counted {number(int_of(value))} tokens, far below the about "
        f"{number(int_of(sent))} that were sent: it cuts the prompt silently."
    )


def _bytes(state: ChatState, t: Thresholds, at: int) -> Verdict:
    size, limit = state.history.request_bytes, state.facts.bytes_limit
    if state.requests.too_large:
        return (CRITICAL, size, limit, state.history.images)
    if size is None or limit is None or size <= limit:
        return None
    return (WARNING, size, limit, state.history.images)


def _say_bytes(facts: Facts) -> str:
    size, limit, images = facts
    text = "the request is too large in bytes"
    if size is not None and limit is not None:
        text = f"the request has {number(int_of(size))} bytes, the limit is {number(int_of(limit))}"
    if images:
        text += f" ({number(int_of(images))} images)"
    return text + "; its tokens are not the reason."


def _shrink(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (fallback_advice(state),)


def _repeat_fails(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (against("continue", "The same prompt would be refused or cut again."),)


def _drop_blobs(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (manual("Drop images and other large data from the history."),)


def _not_tokens(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (against("compact_fallback", "It frees tokens; here the bytes are the limit."),)


DEFINITIONS = (
    Definition(
        code="over_window",
        state=State.OVER,
        title="Over the window",
        severity="critical; warning where the agent itself refused to send it",
        check=_over_window,
        sentence=_say_over_window,
        recommended=_shrink,
        discouraged=_repeat_fails,
        doc="The provider refused a request as too large (with or without numbers), or the "
        "agent's own count is above the window. Closes at the next accepted request. What the "
        "agent counted and refused to send is a warning; turns that fail over it count by "
        "themselves.",
        actions=("compact_fallback",),
    ),
    Definition(
        code="over_budget",
        state=State.OVER,
        title="Over the budget",
        severity="critical; warning where the reserve is assumed and the request was answered, or "
        "where the agent itself refused to send it",
        check=_over_budget,
        sentence=_say_over_budget,
        recommended=_shrink,
        discouraged=_repeat_fails,
        doc="The prompt fits the window but leaves less than the reserve for the answer.",
        actions=("compact_fallback",),
    ),
    Definition(
        code="projected_over",
        state=State.OVER,
        title="The next prompt will be over the budget",
        severity="warning",
        check=_projected,
        sentence=_say_projected,
        recommended=_shrink,
        doc="The last reading plus what was added since is above the budget. An agent that was not "
        "due before, or whose compactions have helped, may still compact before it sends: there "
        "it opens when the request goes out.",
        actions=("compact_fallback",),
    ),
    Definition(
        code="provider_truncates",
        state=State.OVER,
        title="The provider cuts the prompt",
        severity="critical",
        check=_truncates,
        sentence=_say_truncates,
        recommended=_shrink,
        doc="The provider's count stands still over 3 full requests while the history grows, or "
        "is far below the bytes sent although it matched before, or is exactly half the window "
        "and 2 of a prompt that was larger. Requests with pictures are not held against their "
        "bytes.",
        actions=("compact_fallback",),
    ),
    Definition(
        code="bytes_limit",
        state=State.OVER,
        title="Too many bytes",
        severity="warning, critical on refusal",
        check=_bytes,
        sentence=_say_bytes,
        recommended=_drop_blobs,
        discouraged=_not_tokens,
        doc="The request's size in bytes is above the limit the agent declared, or was refused.",
        actions=("manual",),
    ),
)
