"""Pages that say no: in the product's dress, with the reason and a way back."""

from __future__ import annotations

import pytest
from django.test import Client, override_settings

from tests.web.markup import Markup, read


def dressed(body: bytes) -> Markup:
    """The page's markup; it brings the styles and leads back to the chats."""
    markup = read(body.decode())
    links = [e.attributes.get("href") or "" for e in markup.elements if e.tag in ("a", "link")]
    assert any("css/base" in link for link in links)
    assert "/" in links
    return markup


def test_a_page_that_is_not_there_says_so(viewer: Client) -> None:
    answer = viewer.get("/chats/999999/")
    assert answer.status_code == 404
    assert "no such page" in dressed(answer.content).text


def test_a_viewer_is_told_who_may(viewer: Client) -> None:
    answer = viewer.get("/audit/")
    assert answer.status_code == 403
    text = dressed(answer.content).text
    assert "Not allowed" in text and "Only admins configure." in text


def test_a_cursor_of_nowhere_is_not_understood(viewer: Client) -> None:
    answer = viewer.get("/?cursor=nonsense")
    assert answer.status_code == 400
    assert "Not understood" in dressed(answer.content).text


def test_a_page_too_old_to_act_from_says_that_nothing_was_done(admin: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    answer = strict.post("/settings/tokens/", {"name": "x"})
    assert answer.status_code == 403
    text = dressed(answer.content).text
    assert "Nothing was done" in text and "reload it" in text


def test_a_fault_of_the_server_shows_no_trace_and_stands_alone(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("ctxhealth.store.queries.agents_list", fail)
    viewer.raise_request_exception = False
    answer = viewer.get("/agents/")
    assert answer.status_code == 500
    text = dressed(answer.content).text
    assert "has logged it" in text
    assert "secret detail" not in text


@override_settings(ALLOWED_HOSTS=["ours.example"])
def test_a_foreign_host_name_is_not_understood(viewer: Client) -> None:
    answer = viewer.get("/", headers={"host": "evil.example"})
    assert answer.status_code == 400
    assert "host name" in dressed(answer.content).text
