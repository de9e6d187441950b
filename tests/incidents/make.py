"""Write the fixtures and their page: ``python -m tests.incidents.make`` from the project's folder.

A change here is a change of what is expected of the diagnosis: read the difference.
"""

from __future__ import annotations

from pathlib import Path

from tests.incidents import counts, growth, latches, loops, overflows, stalls
from tests.incidents.page import page
from tests.incidents.telling import CASES

FOLDER = Path(__file__).parent
DOCUMENT = Path(__file__).parents[2] / "docs" / "incidents.md"
SECTIONS = (stalls, loops, growth, latches, counts, overflows)


def files() -> dict[str, str]:
    """File name -> text."""
    assert SECTIONS
    found: dict[str, str] = {}
    for case in CASES:
        found[f"{case.name}.jsonl"] = case.stream()
        found[f"{case.name}.expect.json"] = case.expected()
    return found


def main() -> None:
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    DOCUMENT.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
