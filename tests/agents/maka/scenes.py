"""What happens in a session, as short stories that several tests tell."""

from __future__ import annotations

from tests.agents.maka.rig import decision
from tests.agents.maka.script import Session

BELOW = decision("unchanged", "priorReplay", reason="below_high_water")


def healthy(session: Session) -> None:
    """Two turns; in the second the context fills, is folded, and the turn is answered."""
    turn = session.begin("t1")
    session.request(turn, 4_938)
    session.say(turn)
    session.end(turn)
    turn = session.begin("t2", "go on")
    session.request(turn, 9_100, finish="tool_calls")
    session.tool(turn, 9_000)
    session.request(turn, 12_168, finish="tool_calls")
    session.tool(turn, 9_000)
    folded = session.fold(turn, 9_400, 296)
    session.request(turn, 8_158)
    session.say(turn)
    replaced = decision(
        "replaced", phase="mid_turn", boundaryIds=[folded], estimatedTokensBefore=8_420,
        estimatedTokensAfter=147,
    )  # fmt: skip
    session.end(turn, decisions=[BELOW, replaced], before=3_035, after=3_035)


def latched(session: Session) -> None:
    """Nothing could be folded at first; then pairs land, it overflows, and nothing is tried."""
    turn = session.begin("t1", "find every caller")
    session.request(turn, 9_000, finish="tool_calls")
    session.tool(turn, 20_000)
    session.request(turn, 14_100, finish="tool_calls")
    session.tool(turn, 9_000)
    session.overflow(turn)
    session.end(turn, "failed", error="context_overflow", message="Context window exceeded")


def overflowed(session: Session) -> None:
    """An overflow, a rescue whose summarizer answers nothing, a turn that fails."""
    turn = session.begin("t1")
    session.request(turn, 10_790)
    session.say(turn)
    session.end(turn)
    turn = session.begin("t2", "more")
    session.overflow(turn)
    session.fold(turn, 9_205, 1, wrote=False)
    session.end(turn, "failed", error="context_overflow", message="Context window exceeded")


def exhausted(session: Session) -> None:
    """Three summaries that say nothing, each in its step, then Maka itself refuses to send."""
    turn = session.begin("t1")
    for tokens in (10_823, 12_949, 15_075):
        session.request(turn, tokens, finish="tool_calls")
        session.tool(turn, 8_000)
        session.fold(turn, tokens, 1, wrote=False)
    session.end(turn, "failed", error="context_budget_exhausted")


def silent(session: Session) -> None:
    """A turn that ends well and says nothing."""
    turn = session.begin("t1")
    session.request(turn, 4_051, 1)
    session.end(turn)
