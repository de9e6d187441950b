"""The map of rooms in docs/architecture.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from ctxhealth.ops import rooms

ROOT = settings.BASE_DIR / "ctxhealth"


def test_the_map_in_the_documents_is_the_map_of_the_code() -> None:
    document = (settings.BASE_DIR / "docs" / "architecture.md").read_text("utf-8")
    assert rooms.redrawn(document, ROOT) == document, "run: python3 manage.py rooms --write"


def test_every_way_to_import_a_room_is_seen() -> None:
    source = """
import ctxhealth.core.model
from ctxhealth import runtime
from ctxhealth.store.queries import x
import json
def late():
    from ctxhealth.web import fragments
"""
    assert rooms.imports_of(source) == {"core", "runtime", "store", "web"}


def test_a_new_import_makes_the_map_stale(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.py").write_text("x = 1\n", "utf-8")
    (tmp_path / "b.py").write_text("", "utf-8")
    document = f"# Map\n{rooms.START}\n{rooms.END}\n"
    before = rooms.redrawn(document, tmp_path)
    assert "| `a` | nothing |" in before
    (tmp_path / "a" / "m.py").write_text("import ctxhealth.b\n", "utf-8")
    after = rooms.redrawn(before, tmp_path)
    assert "| `a` | `b` |" in after


def test_a_document_without_a_place_for_the_map_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place"):
        rooms.redrawn("# nothing", ROOT)
