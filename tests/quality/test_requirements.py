"""Requirements: pinned with hashes, no index named, each one with its reason."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.quality.sources import ROOT

FILES = ("requirements.txt", "requirements-dev.txt")
_PIN = re.compile(r"^([a-z0-9._-]+)==\S+", re.MULTILINE)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(name: str) -> set[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return {normal(match[1]) for match in _PIN.finditer(text)}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[\[<>=~!; ]", line, maxsplit=1)[0]) for line in requirements}


@pytest.mark.parametrize("name", FILES)
def test_every_pin_has_hashes(name: str) -> None:
    blocks = re.split(r"\n(?=\S)", (ROOT / name).read_text(encoding="utf-8"))
    pins = [block for block in blocks if _PIN.match(block)]
    assert pins
    assert [block.split()[0] for block in pins if "--hash=sha256:" not in block] == []


@pytest.mark.parametrize("name", FILES)
def test_no_index_is_named(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"://|^--?(?:i|index|extra|find|trusted)", text, re.MULTILINE)


def test_the_pins_cover_what_the_project_asks_for() -> None:
    extras = project()["optional-dependencies"]
    server = names(
        [*project()["dependencies"], *extras["server"], *extras["postgres"], *extras["redis"]]
    )
    assert server - pinned("requirements.txt") == set()
    assert names(extras["dev"]) - pinned("requirements-dev.txt") == set()


def test_both_files_agree_on_what_they_share() -> None:
    pins = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)
    first, second = (dict(pins.findall((ROOT / n).read_text(encoding="utf-8"))) for n in FILES)
    shared = first.keys() & second.keys()
    assert {n: (first[n], second[n]) for n in shared if first[n] != second[n]} == {}


def test_an_agent_installs_one_dependency() -> None:
    assert names(project()["dependencies"]) == {"websockets"}


def test_every_dependency_says_why_it_is_there() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    start = lines.index("[project]")
    end = lines.index("[project.scripts]")
    silent = [
        line.strip()
        for before, line in zip(lines[start:end], lines[start + 1 : end], strict=False)
        if re.match(r'^  "[a-z]', line) and not before.strip().startswith("#")
    ]
    assert silent == []
