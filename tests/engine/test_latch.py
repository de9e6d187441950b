"""When automatic compaction stops trying, and what lets it try again."""

from __future__ import annotations

import json

import pytest

from ctxhealth.engine import Cause, HistoryError, Latch, LatchPolicy

POLICY = LatchPolicy(window=20_000, ceiling=19_744)


def _after(outcome: str, calls: int, latch: Latch | None = None) -> Latch | None:
    return POLICY.after_attempt(
        latch, outcome=outcome, calls=calls, key="h1", tokens=16_000, reason="quota", attempt="a1"
    )


SET = Latch("summarizer", "h1", 1, 16_000, "quota", "a1")


def test_a_failed_summarizer_call_latches_by_the_input_hash() -> None:
    assert _after("summarizer_failed", 1) == SET


@pytest.mark.parametrize("outcome", ["no_progress", "grew"])
def test_calls_without_gain_latch_too(outcome: str) -> None:
    latch = _after(outcome, 2)
    assert latch is not None
    assert (latch.kind, latch.calls) == ("no_gain", 2)


@pytest.mark.parametrize(
    ("outcome", "calls"),
    [
        ("nothing_foldable", 0),
        ("nothing_foldable", 3),
        ("no_progress", 0),
        ("grew", 0),
        ("summarizer_failed", 0),
        ("not_needed", 0),
        ("durability_failed", 0),
        ("durability_failed", 1),
        ("cancelled", 1),
        ("timed_out", 1),
        ("refused", 0),
        ("unknown", 1),
    ],
)
def test_nothing_else_latches(outcome: str, calls: int) -> None:
    assert _after(outcome, calls) is None
    assert _after(outcome, calls, SET) is SET


@pytest.mark.parametrize("outcome", ["reduced", "fell_back"])
def test_success_clears(outcome: str) -> None:
    assert _after(outcome, 0, SET) is None
    assert _after(outcome, 2, SET) is None


def test_a_structural_outcome_leaves_the_rescue_open() -> None:
    """Nothing to fold at one step, a fold possible at the next, then an overflow."""
    latch = _after("nothing_foldable", 0)
    for cause in ("proactive", "overflow"):
        assert POLICY.may_attempt(latch, key="h1", tokens=16_000, cause=cause).allowed


def test_without_a_latch_an_attempt_may_run() -> None:
    decision = POLICY.may_attempt(None, key="h1", tokens=5)
    assert (decision.allowed, decision.why, decision.latch) == (True, "open", None)


@pytest.mark.parametrize("cause", ["proactive", "idle"])
def test_the_same_input_is_not_tried_again(cause: Cause) -> None:
    decision = POLICY.may_attempt(SET, key="h1", tokens=16_000, cause=cause)
    assert (decision.allowed, decision.why, decision.latch) == (False, "latched", SET)


@pytest.mark.parametrize(
    ("cause", "why"), [("manual", "manual"), ("forced", "manual"), ("overflow", "overflow")]
)
def test_a_person_and_an_overflow_pass_and_the_latch_stays(cause: Cause, why: str) -> None:
    decision = POLICY.may_attempt(SET, key="h1", tokens=16_000, cause=cause)
    assert (decision.allowed, decision.why, decision.latch) == (True, why, SET)


@pytest.mark.parametrize(("tokens", "allowed"), [(19_743, False), (19_744, True), (25_000, True)])
def test_at_the_ceiling_nothing_is_held_back(tokens: int, allowed: bool) -> None:
    assert POLICY.may_attempt(SET, key="h1", tokens=tokens).allowed is allowed


@pytest.mark.parametrize(
    ("key", "tokens", "released"),
    [
        ("h2", 16_001, False),
        ("h2", 16_999, False),
        ("h2", 17_000, True),
        ("h1", 17_000, False),
        ("h2", 9_000, False),
    ],
)
def test_it_takes_a_changed_input_that_grew_by_a_twentieth_of_the_window(
    key: str, tokens: int, released: bool
) -> None:
    decision = POLICY.may_attempt(SET, key=key, tokens=tokens)
    assert decision.allowed is released
    assert decision.latch is (None if released else SET)
    assert decision.why == ("released" if released else "latched")


@pytest.mark.parametrize(
    ("policy", "latch", "tokens"),
    [
        (LatchPolicy(), SET, 16_001),
        (POLICY, Latch("no_gain", "h1", 1), 16_001),
        (POLICY, SET, None),
    ],
)
def test_where_the_growth_is_unknown_a_changed_input_is_enough(
    policy: LatchPolicy, latch: Latch, tokens: int | None
) -> None:
    assert policy.may_attempt(latch, key="h2", tokens=tokens).why == "released"
    assert not policy.may_attempt(latch, key="h1", tokens=tokens).allowed


def test_a_reading_below_the_trigger_clears() -> None:
    for tokens in (8_000, 11_000, 15_999):
        assert POLICY.after_reading(SET, tokens=tokens, trigger=16_000) is None
    assert POLICY.after_reading(SET, tokens=16_000, trigger=16_000) is SET


def test_fifteen_dead_calls_in_a_row_become_one() -> None:
    """A summarizer that never answers was asked 15 times in 47 minutes at 180,000 to 235,000."""
    policy, latch, calls = LatchPolicy(window=262_144, ceiling=245_000), None, 0
    for step, tokens in enumerate(range(180_000, 192_000, 800)):
        decision = policy.may_attempt(latch, key=f"h{step}", tokens=tokens)
        latch = decision.latch
        if decision.allowed:
            calls += 1
            latch = policy.after_attempt(
                latch, outcome="summarizer_failed", calls=1, key=f"h{step}", tokens=tokens
            )
    assert calls == 1


def test_a_latch_survives_a_restart() -> None:
    data = json.loads(json.dumps(SET.to_dict()))
    assert Latch.from_dict(data) == SET
    bare = Latch("no_gain", "h", 2)
    assert Latch.from_dict(bare.to_dict()) == bare


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "structural"}, "latch.kind: unknown kind 'structural'"),
        ({"key": None}, "latch.key: must be a text"),
        ({"calls": -1}, "latch.calls: must be an integer, 0 or more"),
    ],
)
def test_a_damaged_latch_names_the_field(change: dict[str, object], message: str) -> None:
    with pytest.raises(HistoryError, match=message):
        Latch.from_dict({**SET.to_dict(), **change})


def test_the_event_of_a_latch_says_what_passes_and_what_releases_it() -> None:
    assert POLICY.wire(SET, name="l1") == {
        "latch": "l1",
        "kind": "summarizer",
        "scope": "chat",
        "key": "h1",
        "reason": "quota",
        "attempt": "a1",
        "tokens": 16_000,
        "bypass": ["manual", "overflow", "at_ceiling"],
        "release": {"input_changed": True, "success": True, "growth": 1_000},
    }
    bare = LatchPolicy().wire(Latch("no_gain", "h", 2), name="l2")
    assert bare["release"] == {"input_changed": True, "success": True}
    assert bare.keys().isdisjoint({"tokens", "reason", "attempt"})
