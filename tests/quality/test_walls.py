"""What import-linter cannot say: standard library only, no clock, no randomness."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.quality.sources import imports, python_files, relative, tree

STANDARD = frozenset(sys.stdlib_module_names)
CLOCKLESS = ("engine", "core", "wire", "readers")
RANDOM_MODULES = {"random", "secrets", "uuid"}
CLOCK_CALLS = {
    ("time", "time"),
    ("time", "time_ns"),
    ("time", "monotonic"),
    ("time", "monotonic_ns"),
    ("time", "perf_counter"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("date", "today"),
    ("os", "urandom"),
}


def foreign(room: str, allowed: set[str]) -> list[str]:
    """Imports of `room` outside the standard library, itself and `allowed`."""
    own = {f"ctxhealth.{room}", *allowed}
    version = "ctxhealth"
    return [
        f"{relative(path)}:{line} imports {module}"
        for path in python_files(room)
        for line, module in imports(path)
        if module.split(".")[0] not in STANDARD
        and module != version
        and not any(module == name or module.startswith(f"{name}.") for name in own)
    ]


@pytest.mark.parametrize(
    ("room", "allowed"),
    [
        ("bootstrap", set[str]()),
        ("engine", set[str]()),
        ("wire", {"msgspec"}),
        ("core", {"msgspec", "ctxhealth.wire", "ctxhealth.engine"}),
        ("readers", {"msgspec", "ctxhealth.wire", "ctxhealth.engine"}),
        ("client", {"websockets", "msgspec", "orjson", "ctxhealth.engine"}),
    ],
)
def test_a_room_imports_only_what_it_may(room: str, allowed: set[str]) -> None:
    assert python_files(room), f"ctxhealth/{room} is empty"
    # bootstrap hands over to the tests' runner and to Django, and checks that they are there.
    handed_over = ("tests.run.main", "django.")
    told = [
        line
        for line in foreign(room, allowed)
        if room != "bootstrap" or not any(name in line for name in handed_over)
    ]
    assert told == []


def clock_and_chance(path: Path) -> list[str]:
    """Calls that make a result depend on when or where it is computed."""
    found = [
        f"{relative(path)}:{line} imports {module}"
        for line, module in imports(path)
        if module in RANDOM_MODULES
    ]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            base = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if (base, node.attr) in CLOCK_CALLS:
                found.append(f"{relative(path)}:{node.lineno} reads {base}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module == "time" and node.names:
            found.append(f"{relative(path)}:{node.lineno} imports from time")
    return found


@pytest.mark.parametrize("room", CLOCKLESS)
def test_a_pure_room_has_no_clock_and_no_chance(room: str) -> None:
    assert [told for path in python_files(room) for told in clock_and_chance(path)] == []


def test_the_clock_finder_finds_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ctxhealth" / "sample.py"
    path.parent.mkdir()
    path.write_text("import random\nimport time\nx = time.monotonic()\n", encoding="utf-8")
    monkeypatch.setattr("tests.quality.sources.ROOT", tmp_path)
    assert len(clock_and_chance(path)) == 2
