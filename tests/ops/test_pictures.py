"""Pictures of the documents: what is missing is said; the way in is found in what `up` prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ctxhealth.ops import pictures

UP = """\
The database is ready.
ctxhealth 0.1.0 serves at http://127.0.0.1:40123

  Log in (once, within 60 minutes):  http://127.0.0.1:40123/login/once/abc_DEF-1/
"""


def printing(text: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"print({text!r})"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_the_address_and_the_way_in_are_read_from_what_the_server_prints() -> None:
    with printing(UP) as server:
        found = pictures._serving(server)
    assert found == pictures.Demo("http://127.0.0.1:40123", "/login/once/abc_DEF-1/")


def test_a_demo_that_does_not_start_is_said_so() -> None:
    missed = pytest.raises(pictures.CannotPicture, match="did not start")
    with printing("the port is taken") as server, missed:
        pictures._serving(server)


def test_a_browser_is_named_or_found_or_missed_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CTXHEALTH_CHROMIUM", "/opt/own/chromium")
    assert pictures.browser_path() == "/opt/own/chromium"
    monkeypatch.delenv("CTXHEALTH_CHROMIUM")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pictures.CannotPicture, match="no Chromium"):
        pictures.browser_path()


def test_the_documents_show_only_pictures_that_the_command_takes() -> None:
    root = Path(__file__).parents[2]
    assert {path.name for path in (root / "docs" / "images").iterdir()} == set(pictures.TAKEN)
    assert "docs/images/board.png" in (root / "README.md").read_text("utf-8")
    tour = (root / "docs" / "dashboard.md").read_text("utf-8")
    assert set(re.findall(r"\(images/([\w-]+\.png)\)", tour)) == set(pictures.TAKEN)
