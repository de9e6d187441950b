"""Public incidents, replayed: the diagnosis of each is the one expected, and no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxhealth.cli.replayed import Replay
from ctxhealth.cli.streams import read_stream
from tests.incidents.comparing import compare
from tests.incidents.make import DOCUMENT, FOLDER, files
from tests.incidents.page import page

STREAMS = sorted(FOLDER.glob("*.jsonl"))


def differences(stream: Path) -> list[str]:
    expected = json.loads(stream.with_suffix(".expect.json").read_text("utf-8"))
    checks = {check["after"]: check for check in expected["checks"]}
    replay, found = Replay(), []
    for number, line in enumerate(read_stream(stream), start=1):
        replay.take(line)
        if number in checks:
            found += [f"after line {number}: {told}" for told in compare(replay, checks[number])]
    return found


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
def test_the_diagnosis_is_the_expected_one(stream: Path) -> None:
    assert differences(stream) == []


def test_the_fixtures_are_what_the_cases_tell() -> None:
    written = {path.name: path.read_text("utf-8") for path in FOLDER.iterdir()}
    assert written == files()


def test_the_page_of_incidents_is_current() -> None:
    assert DOCUMENT.read_text("utf-8") == page()


def test_every_case_checks_something() -> None:
    for path in FOLDER.glob("*.expect.json"):
        checks = json.loads(path.read_text("utf-8"))["checks"]
        assert checks and all(len(check) > 2 for check in checks), path.name
