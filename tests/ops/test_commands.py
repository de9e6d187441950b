"""Management commands of an operator of the server."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from ctxhealth.ops import doctor
from ctxhealth.store import people, queries, writes
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


def test_a_person_is_made_with_a_role_and_a_login_for_one_use(transactional_db: None) -> None:
    link = run("person", "grace", "--role", "operator").strip()
    token = link.rstrip("/").rpartition("/")[2]
    user = writes.login_link_use(token=token)
    assert user is not None and user.get_username() == "grace"
    assert people.role_of(user) == "operator"
    assert writes.login_link_use(token=token) is None


def test_a_person_has_the_last_role_given_and_no_other(transactional_db: None) -> None:
    run("person", "ada", "--role", "admin")
    run("person", "grace", "--role", "admin")
    run("person", "grace", "--role", "viewer")
    assert people.role_of(User.objects.get(username="grace")) == "viewer"


def test_the_last_admin_keeps_the_role(transactional_db: None) -> None:
    run("person", "grace", "--role", "admin")
    for change in (("--role", "viewer"), ("--disable",)):
        with pytest.raises(CommandError, match="last admin"):
            run("person", "grace", *change)
    assert people.role_of(User.objects.get()) == "admin"


def test_a_disabled_person_has_no_role_and_no_way_in_until_given_one(
    transactional_db: None,
) -> None:
    link = run("person", "grace", "--role", "operator").strip()
    assert "disabled" in run("person", "grace", "--disable")
    assert people.role_of(User.objects.get()) is None
    assert writes.login_link_use(token=link.rstrip("/").rpartition("/")[2]) is None
    run("person", "grace", "--role", "operator")
    assert people.role_of(User.objects.get()) == "operator"


@pytest.mark.parametrize(
    "args", [("a b", "--role", "viewer"), ("x",), ("x", "--disable"), ("x", "--role", "king")]
)
def test_a_person_that_makes_no_sense_is_refused(
    transactional_db: None, args: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError):
        run("person", *args)
    assert not User.objects.exists()


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
