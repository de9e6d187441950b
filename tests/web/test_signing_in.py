"""The way in and out, and the brakes on guessing."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from ctxhealth.store import queries, writes
from ctxhealth.web import brakes

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


@pytest.fixture
def ada() -> None:
    user = writes.user_ensure(username="ada", role="operator")
    user.set_password(PASSWORD)
    user.save()


def try_password(client: Client, password: str, name: str = "ada", **more: str) -> int:
    data = {"username": name, "password": password, **more}
    return client.post("/login/", data).status_code


def test_the_right_password_leads_to_the_page_that_was_asked_for(client: Client, ada: None) -> None:
    data = {"username": "ada", "password": PASSWORD, "next": "/agents/"}
    assert client.post("/login/", data).headers["Location"] == "/agents/"
    assert client.get("/agents/").status_code == 200
    assert queries.audit_page().rows[0].action == "login"


@pytest.mark.parametrize("evil", ["//evil.example/", "https://evil.example/", "javascript:1"])
def test_the_login_never_leads_to_another_host(client: Client, ada: None, evil: str) -> None:
    data = {"username": "ada", "password": PASSWORD, "next": evil}
    assert client.post("/login/", data).headers["Location"] == "/"


def test_a_wrong_password_and_an_unknown_name_are_told_the_same(client: Client, ada: None) -> None:
    answers = [
        client.post("/login/", {"username": name, "password": "x" * 12}).content.decode()
        for name in ("ada", "bob")
    ]
    assert "do not fit" in answers[0]
    assert answers[0].replace("ada", "bob").count("do not fit") == answers[1].count("do not fit")


def test_guessing_is_braked_per_account_and_the_right_password_waits_too(
    client: Client, ada: None
) -> None:
    for _ in range(brakes.PER_ACCOUNT):
        assert try_password(client, "wrong") == 403
    assert try_password(client, PASSWORD) == 429
    assert not client.session.get("_auth_user_id")
    assert queries.audit_page().rows[0].result == "refused: too many tries"


def test_the_brake_of_one_account_does_not_hold_another(client: Client, ada: None) -> None:
    for _ in range(brakes.PER_ACCOUNT):
        try_password(client, "wrong", "bob")
    assert try_password(client, PASSWORD) == 302


def test_a_braked_account_gets_in_by_a_one_time_link(client: Client, ada: None) -> None:
    for _ in range(brakes.PER_ACCOUNT):
        try_password(client, "wrong")
    user = get_user_model().objects.get(username="ada")
    assert client.post(writes.login_link_create(user=user)).status_code == 302
    assert client.get("/").status_code == 200


def test_the_wait_is_short_and_grows_to_a_limit() -> None:
    now = 10_000_000
    assert brakes._wait([now] * (brakes.PER_ACCOUNT - 1), brakes.PER_ACCOUNT, now) == 0
    assert brakes._wait([now] * brakes.PER_ACCOUNT, brakes.PER_ACCOUNT, now) == brakes.STEP_S
    assert brakes._wait([now] * 90, brakes.PER_ACCOUNT, now) == 10 * brakes.STEP_S
    assert brakes._wait([now - 301_000] * 90, brakes.PER_ACCOUNT, now) == 0


def test_a_one_time_link_works_once_and_not_by_looking_at_it(client: Client, ada: None) -> None:
    user = get_user_model().objects.get(username="ada")
    link = writes.login_link_create(user=user)
    assert client.get(link).status_code == 200  # as a scanner would
    assert client.post(link).status_code == 302
    assert client.get("/").status_code == 200
    again = Client().post(link)
    assert again.status_code == 403
    assert "used already" in again.content.decode()


def test_a_link_of_a_disabled_account_is_worth_nothing(client: Client, ada: None) -> None:
    user = get_user_model().objects.get(username="ada")
    link = writes.login_link_create(user=user)
    user.is_active = False
    user.save()
    assert client.post(link).status_code == 403


def test_signing_out_takes_a_press_and_is_written_down(client: Client, ada: None) -> None:
    client.force_login(get_user_model().objects.get(username="ada"))
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").status_code == 302
    assert client.get("/").status_code == 302
    assert queries.audit_page().rows[0].action == "logout"
