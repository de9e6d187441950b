"""docs/findings.md is the catalogue, and every code in it has a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxhealth.core.findings.catalogue import CATALOGUE
from ctxhealth.core.findings.document import document

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_of_findings_is_current() -> None:
    assert (ROOT / "docs" / "findings.md").read_text("utf-8") == document()


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_every_finding_is_named_in_a_test_that_opens_it(code: str) -> None:
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert f'"{code}"' in tests
