"""The computed outcome of an attempt: the table, row by row, and the reported cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxhealth.engine import AttemptFacts, AttemptStep, classify_outcome

F = AttemptFacts
SAME = {"before": 140_261, "after": 140_261}


def _outcome(facts: AttemptFacts) -> str:
    return classify_outcome(facts)[0]


# One fact set that satisfies each row; rows in order.
_ROWS = [
    ("durability_failed", F(durability_error=True)),
    ("cancelled", F(cancelled=True)),
    ("refused", F(refused=True)),
    ("timed_out", F(timed_out=True)),
    ("not_needed", F(before=90, after=90, trigger=100, calls=0)),
    ("summarizer_failed", F(before=90_000, after=100, calls=1, emptied=True)),
    (
        "fell_back",
        F(before=90_000, after=60_000, calls=1, error="quota", steps=(AttemptStep("fallback", 0),)),
    ),
    ("not_comparable", F(before=404, after=17_133, before_scope="history", after_scope="prompt")),
    ("reduced", F(before=100_000, after=40_000, calls=1)),
    ("summarizer_failed", F(before=100_000, after=100_000, calls=1, error="empty")),
    ("nothing_foldable", F(before=50_000, after=50_000, calls=0, reason="no_safe_completed_span")),
    ("no_progress", F(before=50_000, after=50_000, calls=1)),
    ("grew", F(before=905_405, after=1_811_387, calls=1)),
    ("unknown", F()),
]


@pytest.mark.parametrize(("outcome", "facts"), _ROWS)
def test_each_row_has_its_outcome(outcome: str, facts: AttemptFacts) -> None:
    assert _outcome(facts) == outcome


_FLAGGED = ["durability_error", "cancelled", "refused", "timed_out"]


@pytest.mark.parametrize("place", range(len(_FLAGGED)))
def test_a_named_end_wins_over_all_rows_below_it(place: int) -> None:
    winner = _ROWS[place][0]
    for _, facts in _ROWS[place:]:
        assert _outcome(replace(facts, **{_FLAGGED[place]: True})) == winner


# not_needed


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        (F(before=800, after=800, trigger=800, calls=0), "not_needed"),
        (F(before=800, after=800, trigger=800, calls=0, trigger_inclusive=True), "no_progress"),
        (F(before=799, after=799, trigger=800, calls=0, trigger_inclusive=True), "not_needed"),
        (F(before=801, after=801, trigger=800, calls=0), "no_progress"),
        (F(before=700, after=700, trigger=800, calls=1), "no_progress"),
        (F(before=700, after=700, trigger=800), "no_progress"),
        (F(before=700, after=700, calls=0), "unknown"),
        (F(before=700, trigger=800, calls=0), "not_needed"),
        (F(before=700, trigger=800, calls=0, removed=3), "unknown"),
        (F(before=700, after=690, trigger=800, calls=0), "reduced"),
        (F(before=900, after=950, meanwhile=50, trigger=1_000, calls=0), "not_needed"),
    ],
)
def test_not_needed_takes_a_known_trigger_no_call_and_no_change(
    facts: AttemptFacts, outcome: str
) -> None:
    assert _outcome(facts) == outcome


def test_a_trigger_of_another_scope_says_nothing() -> None:
    facts = F(before=700, after=700, before_scope="history", trigger=800, calls=0)
    assert _outcome(replace(facts, trigger_scope="history")) == "not_needed"
    assert _outcome(replace(facts, trigger_scope="prompt")) == "unknown"


# emptied, fell_back


def test_emptied_content_is_a_failure_whatever_was_freed() -> None:
    facts = F(before=183_340, after=45_932, calls=5, emptied=True)
    assert classify_outcome(facts) == ("summarizer_failed", ("emptied",))
    fallback = replace(facts, steps=(AttemptStep("fallback", 0),))
    assert _outcome(fallback) == "summarizer_failed"


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        (F(before=100, after=60, steps=(AttemptStep("fallback", 0),)), "fell_back"),
        (F(before=100, after=60, steps=(AttemptStep("evict"),)), "fell_back"),
        (F(before=100, after=60, calls=0, steps=(AttemptStep("topics_to_bulk", 0),)), "fell_back"),
        (F(before=100, after=60, calls=2, steps=(AttemptStep("topics_to_bulk", 2),)), "reduced"),
        (F(before=100, after=60, steps=(AttemptStep("topics_to_bulk"),)), "reduced"),
        (F(before=100, after=60, calls=0, steps=(AttemptStep("large_message", 0),)), "reduced"),
        (F(before=100, after=60, calls=0, steps=(AttemptStep("prune", 0),)), "reduced"),
        (F(before=100, after=60, calls=0, lossy=True), "fell_back"),
        (F(before=100, after=60, calls=2, lossy=True, error="timeout"), "fell_back"),
        (F(before=100, after=60, calls=2, lossy=True), "reduced"),
        (F(before=100, after=100, calls=0, steps=(AttemptStep("fallback", 0),)), "no_progress"),
    ],
)
def test_a_deterministic_step_must_stand_in_for_a_summary_and_shrink(
    facts: AttemptFacts, outcome: str
) -> None:
    assert _outcome(facts) == outcome


def test_a_fallback_after_a_failed_summary_is_a_fallback_however_little_it_frees() -> None:
    facts = F(before=1_000, after=990, error="quota", calls=1, steps=(AttemptStep("fallback", 0),))
    assert classify_outcome(facts) == ("fell_back", ("ineffective",))


# reduced and its boundary


@pytest.mark.parametrize(
    ("after", "outcome"),
    [(95_000, "reduced"), (95_001, "summarizer_failed"), (99_999, "summarizer_failed")],
)
def test_after_a_failed_last_call_five_percent_must_be_freed(after: int, outcome: str) -> None:
    assert _outcome(F(before=100_000, after=after, calls=2, error="timeout")) == outcome


@pytest.mark.parametrize(
    ("after", "flags"), [(95_000, ()), (95_001, ("ineffective",)), (99_999, ("ineffective",))]
)
def test_less_than_five_percent_is_reduced_but_ineffective(
    after: int, flags: tuple[str, ...]
) -> None:
    assert classify_outcome(F(before=100_000, after=after, calls=1)) == ("reduced", flags)


@pytest.mark.parametrize(
    ("after", "flagged"), [(35_839, True), (35_840, False), (71_680, False), (11_943, True)]
)
def test_less_than_half_the_target_is_over_compacted(after: int, flagged: bool) -> None:
    facts = F(before=206_297, after=after, calls=11, target=71_680)
    assert ("over_compacted" in classify_outcome(facts)[1]) is flagged


# summarizer_failed, nothing_foldable


@pytest.mark.parametrize("calls", [1, 15])
def test_a_structural_reason_after_a_call_is_a_summarizer_failure(calls: int) -> None:
    facts = F(**SAME, calls=calls, reason="no_safe_completed_span")
    assert _outcome(facts) == "summarizer_failed"


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        (F(**SAME, calls=0, structural=True), "nothing_foldable"),
        (F(**SAME, calls=0, reason="already_compacted"), "nothing_foldable"),
        (F(**SAME, reason="no_safe_completed_span"), "no_progress"),
        (F(calls=0, reason="no_safe_completed_span"), "nothing_foldable"),
        (F(calls=0, reason="input_too_large", error="overflow"), "unknown"),
        (F(calls=1, error="quota"), "summarizer_failed"),
        (F(error="quota"), "summarizer_failed"),
        (F(calls=0, error="quota"), "unknown"),
        (F(before=100_000, after=40_000, calls=1, structural=True), "reduced"),
    ],
)
def test_calls_decide_not_the_reason_alone(facts: AttemptFacts, outcome: str) -> None:
    assert _outcome(facts) == outcome


# no_progress, grew


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (50_000, 50_000, "no_progress"),
        (50_000, 50_500, "no_progress"),
        (50_000, 50_501, "grew"),
        (5_718, 5_918, "no_progress"),
        (5_718, 5_919, "grew"),
        (51_300, 51_782, "no_progress"),
        (206_297, 223_306, "grew"),
        (30_029, 197_548, "grew"),
        (72_706, 79_680, "grew"),
    ],
)
def test_growth_within_a_percent_or_two_hundred_is_no_progress(
    before: int, after: int, outcome: str
) -> None:
    assert _outcome(F(before=before, after=after, calls=1)) == outcome


def test_what_came_in_meanwhile_is_subtracted() -> None:
    """5,718 became 5,775 because a user message of 57 arrived while the model was asked."""
    assert _outcome(F(before=40_000, after=41_000, calls=1)) == "grew"
    assert _outcome(F(before=40_000, after=41_000, calls=1, meanwhile=1_000)) == "no_progress"
    assert _outcome(F(before=40_000, after=40_500, calls=1, meanwhile=5_000)) == "reduced"


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        (F(removed=0, calls=1), "no_progress"),
        (F(removed=0), "no_progress"),
        (F(removed=0, calls=0), "unknown"),
        (F(removed=0, calls=0, steps=(AttemptStep("large_message"),)), "no_progress"),
        (F(removed=5, calls=1), "unknown"),
        (F(before=50_000), "unknown"),
        (F(after=50_000, calls=1), "unknown"),
        (F(**SAME), "no_progress"),
        (F(**SAME, calls=0), "unknown"),
        (F(**SAME, calls=0, trigger=140_000), "no_progress"),
        (F(**SAME, calls=0, steps=(AttemptStep("large_message", 0),)), "no_progress"),
    ],
)
def test_no_progress_takes_something_that_ran(facts: AttemptFacts, outcome: str) -> None:
    assert _outcome(facts) == outcome


# not_comparable


def test_counts_of_two_scopes_are_not_compared() -> None:
    facts = F(before=404, after=17_133, before_scope="history", after_scope="prompt", calls=1)
    assert classify_outcome(facts) == ("not_comparable", ())
    assert _outcome(replace(facts, error="quota")) == "not_comparable"
    assert _outcome(replace(facts, after_scope="history")) == "grew"
    assert _outcome(replace(facts, after_scope=None)) == "grew"
    falls = replace(facts, before=90_000, after=300, steps=(AttemptStep("fallback", 0),))
    assert classify_outcome(falls) == ("not_comparable", ())


# Reported cases


@pytest.mark.parametrize(
    ("facts", "outcome", "flags"),
    [
        (F(**SAME, calls=1, error="empty", trigger=140_000), "summarizer_failed", ()),
        (F(before=734_649, after=707_322, calls=1), "reduced", ("ineffective",)),
        (F(before=187_982, after=87_965, calls=1), "reduced", ()),
        (F(before=154_992, after=49_761), "reduced", ()),
        (F(before=218_185, after=212_546, calls=1, error="empty"), "summarizer_failed",
         ("ineffective",)),
        (F(before=6_056, after=4_323, calls=0, steps=(AttemptStep("topics_to_bulk", 0),)),
         "fell_back", ()),
        (F(before=5_927, after=5_927, calls=0, trigger=5_600), "no_progress", ()),
        (F(before=468_102, after=28_759, calls=1, target=160_000), "reduced", ("over_compacted",)),
    ],
)  # fmt: skip
def test_reported_cases(facts: AttemptFacts, outcome: str, flags: tuple[str, ...]) -> None:
    assert classify_outcome(facts) == (outcome, flags)


def test_an_early_end_has_no_flags() -> None:
    facts = F(before=100_000, after=99_000, calls=1, cancelled=True, emptied=True)
    assert classify_outcome(facts) == ("cancelled", ())
