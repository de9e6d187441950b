"""Bundles from the command line: what it says, and what it refuses."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from ctxhealth.ops import serving
from ctxhealth.store import incarnation, queries
from ctxhealth.store.bundles import bundle_of
from tests.live.world import Agent
from tests.web.troubled import incident_of


@pytest.fixture(autouse=True)
def own_folder(settings: Settings, tmp_path: Path) -> Iterator[None]:
    settings.CTXHEALTH_DATA_DIR = tmp_path / "data"
    settings.CTXHEALTH_DATA_DIR.mkdir()
    yield


def run(path: Path) -> str:
    out = io.StringIO()
    call_command("import_bundle", str(path), stdout=out)
    return out.getvalue()


def test_a_bundle_is_brought_in_once_and_said_so(transactional_db: None, tmp_path: Path) -> None:
    number = incident_of(Agent())
    path = tmp_path / "one.ctxhealth.json"
    path.write_bytes(bundle_of(number) or b"")
    assert "It was made here" in run(path)
    incarnation.begin_anew()
    said = run(path)
    found = queries.incident_list(state="closed").rows[0]
    assert said.startswith(f"Imported as incident {found.id} of chat {found.chat}: ")
    assert "It is here already" in run(path)


def test_what_cannot_be_read_is_refused_in_one_sentence(
    transactional_db: None, tmp_path: Path
) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text('{"format":"zip"}', "utf-8")
    with pytest.raises(CommandError, match=r"^odd\.json: no bundle"):
        run(odd)
    with pytest.raises(CommandError, match="No such file"):
        run(tmp_path / "nowhere.json")
    with serving.data_dir_held(), pytest.raises(CommandError, match="already uses"):
        run(odd)
