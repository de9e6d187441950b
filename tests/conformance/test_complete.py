"""No case of the collection is left out without a word."""

from __future__ import annotations

from importlib import import_module

from .cases import AGENT_ZERO, ALL, COVERED, NOT_OURS

_MODULES = ("qwenpaw", "maka", "reasonix", "agent_zero")


def test_every_case_has_a_test_or_a_reason() -> None:
    for name in _MODULES:
        import_module(f"tests.conformance.test_{name}")
    assert sorted(ALL - COVERED.keys() - NOT_OURS.keys()) == []


def test_no_case_is_both_tested_and_excused_or_unknown() -> None:
    for name in _MODULES:
        import_module(f"tests.conformance.test_{name}")
    assert sorted(COVERED.keys() & NOT_OURS.keys()) == []
    assert sorted((COVERED.keys() | NOT_OURS.keys()) - ALL) == []
    assert AGENT_ZERO.keys() == {case for case in ALL if case.startswith("A")}
