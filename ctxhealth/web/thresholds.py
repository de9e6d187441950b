"""Thresholds as their page shows them."""

from __future__ import annotations

from dataclasses import dataclass

from ctxhealth.core.findings.catalogue import CATALOGUE
from ctxhealth.core.tunable import TUNABLES, Tunable
from ctxhealth.store import queries
from ctxhealth.store.queries import SettingRow


@dataclass(frozen=True, slots=True)
class Line:
    """One threshold: ``value`` in its unit, ``set`` where somebody changed it."""

    tunable: Tunable
    value: float
    set: SettingRow | None
    findings: tuple[str, ...]

    @property
    def step(self) -> str:
        """How finely the field may be set."""
        return "1" if self.tunable.whole else "0.01"


def lines(project: int) -> list[Line]:
    """All of them, in the order of the page."""
    given = queries.settings_in_force(project=project, prefix="threshold.")
    return [_line(tunable, given.get(f"threshold.{tunable.name}")) for tunable in TUNABLES]


def _line(tunable: Tunable, row: SettingRow | None) -> Line:
    value = tunable.default if row is None else tunable.shown(row.value)
    titles = tuple(CATALOGUE[code].title for code in tunable.codes)
    return Line(tunable, value, row, titles)
