"""Management commands of an operator of the server."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from ctxhealth.ops import doctor
from ctxhealth.store import queries
from ctxhealth.store.clock import now_ms
from tests.live.world import Agent


def run(*args: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out, **options)
    return out.getvalue()


def test_a_token_is_printed_once_and_works(transactional_db: None) -> None:
    secret = run("issue_token", "ci", "--scopes", "read, operate", "--agent", "bot").strip()
    found = queries.token_check(secret, now_ms())
    assert found is not None
    assert found.scopes == {"read", "operate"}
    assert found.agent_name == "bot"


@pytest.mark.parametrize("args", [("x", "--scopes", "everything"), ("x", "--scopes", ","), (" ",)])
def test_a_token_that_makes_no_sense_is_refused_with_the_field(
    transactional_db: None, args: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError, match=r"^(scopes|name): "):
        run("issue_token", *args)
    assert queries.tokens_list() == []


def test_verify_is_content_with_what_was_stored(robot: Agent) -> None:
    robot.chat("c1", 60_000)
    assert "agree" in run("verify")


def test_verify_says_where_a_projection_is_not_what_the_log_says(robot: Agent) -> None:
    pk = robot.chat("c1", 60_000)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE store_chat SET state = 'stopped' WHERE id = %s", [pk])
    with pytest.raises(CommandError, match="1 differences"):
        run("verify")
    assert "were rebuilt" in run("verify", "--repair")
    assert "agree" in run("verify")


def test_the_doctor_looks_at_everything_and_a_sick_part_hides_no_other(
    robot: Agent, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CTXHEALTH_DATA_DIR = tmp_path
    tmp_path.chmod(0o700)
    signs = {sign.name: sign for sign in doctor.examine()}
    assert {"settings", "database", "migrations", "disk", "file system", "fsync", "hints"} <= set(
        signs
    )
    monkeypatch.setattr("shutil.disk_usage", lambda _: (_ for _ in ()).throw(OSError("gone")))
    after = {sign.name: sign for sign in doctor.examine()}
    assert not after["data folder"].good
    assert "gone" in after["data folder"].says
    assert after["fsync"].says


def test_the_doctor_fails_where_something_is_wrong(
    robot: Agent, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LITTLE_SPACE", 2**70)
    with pytest.raises(CommandError, match="found"):
        run("doctor")
