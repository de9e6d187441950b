"""The closing table of `manage.py test` counts what pytest really did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.run.summary import Run, read_run, table

MIXED = """
import pytest

def test_good(): pass
def test_bad(): assert False
def test_absent(): pytest.skip("needs a thing")

@pytest.fixture
def broken(): raise OSError("no")

def test_error(broken): pass

@pytest.mark.xfail
def test_known(): assert False
"""


def run_of(folder: Path, source: str) -> Run:
    (folder / "test_mixed.py").write_text(source, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:django", f"--junitxml={report}"]
    code = subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode
    return read_run("SQLite", code, report, 1.0)


def test_each_result_is_counted_once(tmp_path: Path) -> None:
    run = run_of(tmp_path, MIXED)
    assert (run.passed, run.failed, run.skipped) == (2, 2, 1)
    assert run.reasons == {"needs a thing": 1}
    assert not run.succeeded


def test_a_run_that_breaks_before_it_counts_is_a_failure(tmp_path: Path) -> None:
    run = run_of(tmp_path, "def test(:\n")
    assert not run.succeeded
    assert table([run]).splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_the_table_names_what_was_skipped_and_ends_with_the_sums() -> None:
    first = Run("SQLite", passed=5, skipped=2)
    first.reasons.update({"needs chromium": 2})
    lines = table([first, Run("PostgreSQL", passed=3)]).splitlines()
    assert "  skipped 2: needs chromium" in lines
    assert lines[-1] == "8 passed, 0 failed, 2 skipped"
