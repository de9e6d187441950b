"""What every benchmark gives: rows of a table, one number each, where it can be with a ratio."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """``ratio`` to the row named ``of`` in the same run; absolute numbers depend on the machine."""

    name: str
    value: float
    unit: str
    of: str = ""
    ratio: float | None = None
    target: str = ""
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def table(rows: list[Row]) -> str:
    """Aligned text, for people."""
    lines = [("what", "value", "unit", "ratio", "of", "target", "note")]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        value = f"{row.value:,.0f}" if abs(row.value) >= 100 else f"{row.value:,.2f}"
        lines.append((row.name, value, row.unit, ratio, row.of, row.target, row.note))
    widths = [max(len(line[column]) for line in lines) for column in range(7)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in (1, 3) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
