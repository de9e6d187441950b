"""The guard before a request is sent."""

from __future__ import annotations

import pytest

from ctxhealth.engine import ContextUnfit, Guard, corrected_count, crosses, fits


@pytest.mark.parametrize(
    ("count", "window", "reserve", "cap", "ok", "limit"),
    [
        (990, 1_000, 50, None, False, 950),
        (950, 1_000, 50, None, True, 950),
        (951, 1_000, 50, None, False, 950),
        (900, 1_000, 50, None, True, 950),
        (850, 1_000, 50, 200, False, 800),
        (750, 1_000, 50, None, True, 950),
        (750, 1_000, 50, 300, False, 700),
        (750, 1_000, 50, 10, True, 950),
        (31_430, 32_768, 1_638, None, False, 31_130),
        (192_000, 196_608, 4_096, None, True, 192_512),
        (196_602, 196_608, 4_096, None, False, 192_512),
        (99_509, 131_072, 4_096, 32_000, False, 99_072),
        (0, 100, 500, None, True, 0),
        (1, 100, 500, None, False, 0),
    ],
)
def test_the_larger_of_reserve_and_cap_is_kept_free(
    count: int, window: int, reserve: int, cap: int | None, ok: bool, limit: int
) -> None:
    got = fits(count, window, reserve, cap)
    assert (got.ok, got.limit, got.corrected) == (ok, limit, count)
    assert got.code == (None if ok else "CONTEXT_UNFIT")


def test_a_count_that_sees_six_tenths_is_corrected_before_it_is_judged() -> None:
    """117,961 counted locally was 196,602 at the provider: 60% of the window by the local count."""
    assert fits(117_961, 196_608, 4_096).ok
    got = fits(117_961, 196_608, 4_096, calibration=117_961 / 196_602)
    assert (got.ok, got.corrected) == (False, 196_602)


@pytest.mark.parametrize(
    ("calibration", "corrected"), [(None, 600), (0.6, 1_000), (1.0, 600), (1.4, 600), (0.7, 858)]
)
def test_only_an_undercount_is_corrected(calibration: float | None, corrected: int) -> None:
    assert corrected_count(600, calibration) == corrected


def test_without_a_window_nothing_is_refused() -> None:
    got = fits(10_000_000, None, 4_096)
    assert (got.ok, got.limit, got.code, got.message) == (True, None, None, "")


@pytest.mark.parametrize("name", ["count", "window", "reserve", "cap"])
def test_a_negative_size_is_refused_by_name(name: str) -> None:
    sizes = {"count": 5, "window": 10, "reserve": 1, "cap": 1, name: -1}
    with pytest.raises(ValueError, match=f"^{name}: must be 0 or more"):
        fits(**sizes)


def test_a_calibration_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="calibration: must be above 0"):
        fits(5, 10, calibration=0)


def test_a_refusal_names_both_numbers_and_what_to_do() -> None:
    text = fits(289_259, 272_000, 4_096).message
    assert text.startswith("CONTEXT_UNFIT")
    assert "289,259" in text and "267,904" in text and "larger window" in text
    assert fits(1, 10).message == ""


@pytest.mark.parametrize(
    ("count", "inclusive", "crossed"),
    [(799, False, False), (800, False, False), (801, False, True), (800, True, True)],
)
def test_a_trigger_met_exactly_is_crossed_only_where_inclusive(
    count: int, inclusive: bool, crossed: bool
) -> None:
    assert crosses(count, 800, inclusive) is crossed


class _Agent:
    """Counts what the guard asks of it."""

    def __init__(self, size: int, freed: int = 0, error: Exception | None = None) -> None:
        self.size = size
        self.freed = freed
        self.error = error
        self.counts = 0
        self.limits: list[int] = []

    def count(self) -> int:
        self.counts += 1
        return self.size

    def compact(self, limit: int) -> None:
        self.limits.append(limit)
        if self.error is not None:
            raise self.error
        self.size -= self.freed


def test_a_request_that_fits_is_counted_once_and_not_compacted() -> None:
    agent = _Agent(800)
    got = Guard(1_000, 50).before_send(agent.count, agent.compact)
    assert (got.ok, got.compacted, agent.counts, agent.limits) == (True, False, 1, [])


def test_a_forced_compaction_that_helps_lets_the_request_go() -> None:
    agent = _Agent(850, freed=100)
    got = Guard(1_000, 50).before_send(agent.count, agent.compact, cap=200)
    assert (got.ok, got.corrected, got.compacted) == (True, 750, True)
    assert (agent.counts, agent.limits) == (2, [800])


def test_after_one_compaction_and_one_recount_it_is_refused() -> None:
    agent = _Agent(990, freed=10)
    got = Guard(1_000, 50).before_send(agent.count, agent.compact)
    assert (got.ok, got.code, got.corrected, got.limit) == (False, "CONTEXT_UNFIT", 980, 950)
    assert (agent.counts, agent.limits) == (2, [950])
    with pytest.raises(ContextUnfit, match="980 tokens, 950 are usable"):
        raise ContextUnfit(got)


def test_a_compaction_that_raises_leads_to_the_refusal_not_to_the_error() -> None:
    agent = _Agent(990, error=RuntimeError("no quota"))
    got = Guard(1_000, 50).before_send(agent.count, agent.compact)
    assert (got.ok, got.compaction_error) == (False, "RuntimeError: no quota")
    assert agent.counts == 2


def test_the_limit_for_the_compaction_is_in_the_counters_own_units() -> None:
    agent = _Agent(600, freed=100)
    got = Guard(1_000, 100, calibration=0.6).before_send(agent.count, agent.compact)
    assert agent.limits == [540]
    assert (got.ok, got.corrected) == (True, 834)


def test_without_a_window_nothing_is_compacted() -> None:
    agent = _Agent(10_000)
    assert Guard(None).before_send(agent.count, agent.compact).ok
    assert agent.limits == []
