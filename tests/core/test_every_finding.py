"""No finding without a story where it fires and one, a step short of it, where it does not."""

from __future__ import annotations

import pytest

from ctxhealth.core.findings.catalogue import CATALOGUE

from .pairs import PAIRS


def test_each_finding_has_its_two_stories() -> None:
    assert sorted(PAIRS) == sorted(CATALOGUE)


@pytest.mark.parametrize("code", CATALOGUE)
def test_it_fires(code: str) -> None:
    story = PAIRS[code](True)
    assert code in story.codes()
    assert story.finding(code).sentence


@pytest.mark.parametrize("code", CATALOGUE)
def test_a_step_short_of_it_it_does_not(code: str) -> None:
    assert code not in PAIRS[code](False).codes()
