"""Who sees what: signed out, without a role, viewer, operator, admin; and the headers of all."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from ctxhealth.store import queries
from tests.live.world import Agent
from tests.web.conftest import SignIn

PAGES = ("/", "/agents/", "/chats/1/", "/chats/1/events/", "/chats/1/timeline/",
         "/chats/1/series.json", "/chats/1/events/1/", "/chats/1/act/compact_fallback/",
         "/commands/0190/", "/audit/", "/settings/tokens/")  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("path", PAGES)
def test_strangers_are_sent_to_the_login_and_learn_nothing(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/login/?next=")


@pytest.mark.django_db
def test_a_fragment_asked_for_by_a_stranger_leads_the_whole_page_to_the_login(
    client: Client,
) -> None:
    response = client.get("/", headers={"HX-Request": "true"})
    assert response.status_code == 401
    assert response.headers["HX-Redirect"] == "/login/"


@pytest.mark.django_db
def test_an_account_without_a_role_is_told_so(client: Client) -> None:
    client.force_login(get_user_model().objects.create_user("nobody"))
    response = client.get("/")
    assert response.status_code == 403
    assert "no role" in response.content.decode()


@pytest.mark.parametrize("path", ["/audit/", "/settings/tokens/"])
def test_only_admins_configure(sign_in: SignIn, path: str) -> None:
    assert sign_in("viewer").get(path).status_code == 403
    assert sign_in("operator").get(path).status_code == 403
    assert sign_in("admin").get(path).status_code == 200


def test_every_answer_forbids_what_is_inline_foreign_or_framed(operator: Client) -> None:
    for path in ("/", "/login/", "/nothing/here/", "/healthz"):
        headers = operator.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "connect-src 'self' ws://testserver" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Referrer-Policy"] == "same-origin"
        assert "camera=()" in headers["Permissions-Policy"]
        assert headers["Cache-Control"] == "no-store"


def test_a_chat_that_does_not_exist_is_not_found_in_plain_words(operator: Client) -> None:
    for path in ("/chats/99/", "/chats/99/events/", "/chats/99/series.json",
                 "/chats/99/act/compact_fallback/", "/commands/none-such/"):  # fmt: skip
        response = operator.get(path)
        assert response.status_code == 404, path
        assert "Traceback" not in response.content.decode()


def test_a_cursor_that_was_never_made_is_refused_with_its_name(operator: Client) -> None:
    response = operator.get("/?cursor=zzz")
    assert response.status_code == 400
    assert "cursor" in response.content.decode()


def test_viewers_see_the_chat_and_no_button(robot: Agent, viewer: Client) -> None:
    pk = robot.chat("c1", 60_000)
    page = viewer.get(f"/chats/{pk}/").content.decode()
    assert "Chat c1" in page
    assert "/act/" not in page
    assert "/act/" not in viewer.get("/").content.decode()


def test_a_viewer_who_presses_anyway_is_refused_and_written_down(
    robot: Agent, viewer: Client
) -> None:
    pk = robot.chat("c1", 60_000)
    path = f"/chats/{pk}/act/compact_fallback/"
    assert viewer.get(path).status_code == 403
    data = {"reason": "x", "idempotency_key": "k", "seen": "0"}
    assert viewer.post(path, data).status_code == 403
    assert queries.chat_commands(pk) == []
    row = queries.audit_page().rows[0]
    assert (row.action, row.by, row.chat) == ("command.compact_fallback", "a-viewer", pk)
    assert row.result.startswith("refused")


def test_a_read_only_server_takes_every_button_away(
    robot: Agent, operator: Client, settings: object
) -> None:
    settings.CTXHEALTH_READ_ONLY = True  # type: ignore[attr-defined]
    pk = robot.chat("c1", 60_000)
    assert "/act/" not in operator.get(f"/chats/{pk}/").content.decode()
    data = {"reason": "x", "idempotency_key": "k", "seen": "0"}
    assert operator.post(f"/chats/{pk}/act/compact_fallback/", data).status_code == 403
    assert queries.chat_commands(pk) == []


@pytest.mark.django_db
def test_after_a_login_one_stands_where_a_form_was_sent_from(client: Client) -> None:
    sent = client.post(
        "/settings/thresholds/unanswered_ms/",
        headers={"Referer": "http://testserver/settings/thresholds/?x=1"},
    )
    assert sent.headers["Location"] == "/login/?next=/settings/thresholds/%3Fx%3D1"
    swapped = client.post(
        "/chats/1/act/compact_fallback/",
        headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/chats/1/"},
    )
    assert swapped.headers["HX-Redirect"] == "/login/?next=/chats/1/"


@pytest.mark.django_db
@pytest.mark.parametrize("foreign", ["https://evil.example/x", "//evil.example/x", "", "\x00"])
def test_a_login_leads_to_no_other_server(client: Client, foreign: str) -> None:
    sent = client.post("/settings/tokens/", headers={"Referer": foreign})
    assert sent.headers["Location"] == "/login/?next=/"


def test_the_empty_board_offers_an_import_only_to_those_who_may(
    operator: Client, viewer: Client
) -> None:
    for client, offered in ((operator, 1), (viewer, 0)):
        page = client.get("/").content.decode()
        start = page[page.index("No chat has reported yet") :]
        assert start.count('href="/import/"') == offered
