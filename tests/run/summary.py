"""Reads what pytest wrote of each run and puts it into one closing table."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Run:
    """One pytest run: its counts, and each reason for a skip with how many tests it kept out."""

    name: str
    code: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def succeeded(self) -> bool:
        """pytest's 5 means that nothing was selected, which is right for a narrow choice."""
        return self.code in (0, 5) and self.failed == 0


def read_run(name: str, code: int, report: Path, seconds: float) -> Run:
    """The run whose JUnit report lies at `report`; without one nothing is counted."""
    run = Run(name, code, seconds=seconds)
    if not report.exists():
        return run
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        _count(run, case)
    return run


def _count(run: Run, case: ElementTree.Element) -> None:
    skipped = case.find("skipped")
    if case.find("failure") is not None or case.find("error") is not None:
        run.failed += 1
    elif skipped is not None and skipped.get("type") == "pytest.skip":
        run.skipped += 1
        run.reasons[skipped.get("message", "")] += 1
    else:
        run.passed += 1


def table(runs: list[Run]) -> str:
    """The closing lines; the last one holds the sums alone."""
    lines = ["", f"{'run':<14}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}"]
    lines += [_row(run) for run in runs]
    reasons = sum((run.reasons for run in runs), Counter[str]())
    lines += [f"  skipped {count}: {reason}" for reason, count in reasons.most_common()]
    passed = sum(run.passed for run in runs)
    # A run that broke before it could count its failures is one failure.
    failed = sum(run.failed or (0 if run.succeeded else 1) for run in runs)
    lines.append(f"{passed} passed, {failed} failed, {sum(run.skipped for run in runs)} skipped")
    return "\n".join(lines)


def _row(run: Run) -> str:
    counts = f"{run.passed:>8}{run.failed:>8}{run.skipped:>9}{run.seconds:>9.0f}"
    remark = "" if run.succeeded else f"   failed (pytest ended with {run.code})"
    return f"{run.name:<14}{counts}{remark}"
