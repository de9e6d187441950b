"""docs/protocol.md is what the Structs say."""

from __future__ import annotations

import re
from pathlib import Path

from ctxhealth.wire import contract
from ctxhealth.wire.document import document
from ctxhealth.wire.events import EVENT_TYPES

ROOT = Path(__file__).resolve().parents[2]


def test_the_protocol_page_is_current() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert page == document(), "run: python -m ctxhealth.wire.document > docs/protocol.md"


def test_every_event_is_described() -> None:
    page = document()
    assert [name for name in EVENT_TYPES if f"### `{name}`" not in page] == []


def test_every_line_of_the_contract_has_a_test_that_names_it() -> None:
    tests = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("contract", "ingest")
        for path in (ROOT / "tests" / folder).glob("test_*.py")
    )
    named = {int(number) for number in re.findall(r"def test_line_(\d\d)_", tests)}
    assert named == set(range(1, len(contract.LINES) + 1))
