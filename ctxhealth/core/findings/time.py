"""What only the passing of time shows: hung, unanswered, offline; judged on ticks."""

from __future__ import annotations

from ctxhealth.core.advice import advise, manual
from ctxhealth.core.findings.definition import (
    CRITICAL,
    INFO,
    WARNING,
    Definition,
    Facts,
    Verdict,
    int_of,
    only,
)
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.timing import hung_since, is_followed, unanswered_due
from ctxhealth.core.wording import clock, duration, number


def _hung(state: ChatState, t: Thresholds, at: int) -> Verdict:
    found = hung_since(state, t)
    if found is None or at < found.due or not is_followed(state, t, at):
        return None
    return (CRITICAL, found.what, found.name, found.since, found.due - found.since)


def _say_hung(facts: Facts) -> str:
    what, _, since, limit = facts
    return (
        f"a {what} begun at {clock(int_of(since))} has no end after more than "
        f"{duration(int_of(limit))}."
    )


def _advise_hung(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    stop = advise(state, "stop_turn", "Stop the running turn, then continue it.")
    rescue = advise(state, "rescue", "If it does not stop: rescue the chat (ends its work).")
    return (stop, rescue)


def _unanswered(state: ChatState, t: Thresholds, at: int) -> Verdict:
    due, waiting = unanswered_due(state, t), state.turns.waiting_since
    if due is None or waiting is None or at < due or not is_followed(state, t, at):
        return None
    return (CRITICAL, waiting)


def _say_unanswered(facts: Facts) -> str:
    return (
        f"the user has waited since {clock(int_of(facts[0]))} and nothing is under way: "
        "no request, no call, no compaction."
    )


def _advise_unanswered(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (advise(state, "continue", "Continue the unanswered turn."),)


def _offline(state: ChatState, t: Thresholds, at: int) -> Verdict:
    if not state.link.offline:
        return None
    return (WARNING, state.link.since)


def _say_offline(facts: Facts) -> str:
    return f"the agent is offline since {clock(int_of(facts[0]))} while this chat needs it."


def _late(state: ChatState, t: Thresholds, at: int) -> Verdict:
    return (INFO, state.link.since) if state.link.state == "late" else None


def _say_late(facts: Facts) -> str:
    return f"the agent's connection ended at {clock(int_of(facts[0]))}; it may come back."


def _skew(state: ChatState, t: Thresholds, at: int) -> Verdict:
    skew = state.link.skew_ms
    if skew is None or abs(skew) <= t.skew_ms:
        return None
    return (WARNING, skew)


def _say_skew(facts: Facts) -> str:
    skew = int_of(facts[0])
    way = "ahead of" if skew > 0 else "behind"
    return f"the agent's clock is {number(abs(skew) // 1000)} s {way} the server's."


def _advise_offline(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (manual("Start the agent again, or restore its way to the server."),)


DEFINITIONS = (
    Definition(
        code="unanswered",
        state=State.STOPPED,
        title="Nobody answers the user",
        severity="critical after 10 minutes",
        check=_unanswered,
        sentence=_say_unanswered,
        recommended=_advise_unanswered,
        doc="A user waits and neither a request nor a call nor a compaction is open. Not judged "
        "anew while the agent is away, nor in the 45 seconds after it came back: the answer may be "
        "waiting there.",
        actions=("continue",),
    ),
    Definition(
        code="hung",
        state=State.HUNG,
        title="Hung",
        severity="critical after 180 s or 5 times the chat's median, or past its lease",
        check=_hung,
        sentence=_say_hung,
        recommended=_advise_hung,
        doc="A request or a compaction attempt was begun and has not ended. A request that names "
        "a large output cap gets up to 5 minutes to write it; one whose turn has ended is not "
        "waited for, nor one past its time where a later request, or for a summary and an attempt "
        "a later turn, was answered. Not judged while the agent is offline, nor in the 45 seconds "
        "after it came back: its answer may be waiting there.",
        actions=("stop_turn", "rescue"),
    ),
    Definition(
        code="clock_skew",
        state=State.DEGRADED,
        title="The agent's clock is off",
        severity="warning above 30 s",
        check=_skew,
        sentence=_say_skew,
        recommended=only("Set the clock of the agent's machine (NTP)."),
        doc="Times in the agent's events are shifted; ages and orders here use the server's.",
        actions=("manual",),
    ),
    Definition(
        code="agent_offline",
        state=State.DEGRADED,
        title="The agent is offline",
        severity="warning when the chat is in trouble",
        check=_offline,
        sentence=_say_offline,
        recommended=_advise_offline,
        doc="The connection ended more than 45 seconds ago while a user waited or a finding was "
        "open; after a restart of the server agents get 90 seconds to come back. A healthy chat "
        "whose agent leaves is only shown as offline.",
        actions=("manual",),
    ),
    Definition(
        code="agent_late",
        state=State.WATCH,
        title="The agent is late",
        severity="info",
        check=_late,
        sentence=_say_late,
        doc="The connection ended a moment ago while the chat was in trouble.",
    ),
)
