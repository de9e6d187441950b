"""Tokens, the audit trail, the agents."""

from __future__ import annotations

import re

from django.test import Client

from ctxhealth.store import queries, writes
from tests.live.world import Agent, now
from tests.web.markup import read


def test_a_token_is_shown_once_and_works(admin: Client) -> None:
    data = {"name": "laptop", "scopes": "ingest command", "agent_name": "", "days": "30"}
    page = admin.post("/settings/tokens/", data).content.decode()
    secret = re.search(r"ctxh_[0-9a-f]{12}_[\w-]{43}", page)
    assert secret is not None
    token = queries.token_check(secret[0], now())
    assert token is not None
    assert token.scopes == {"ingest", "command"}
    assert token.expires_at is not None
    assert secret[0] not in admin.get("/settings/tokens/").content.decode()


def test_a_revoked_token_stands_there_as_revoked(admin: Client) -> None:
    made = writes.token_create(name="old")
    assert admin.post(f"/settings/tokens/{made.token.pk}/revoke/").status_code == 302
    assert queries.token_check(made.secret, now()) is None
    assert "revoked" in admin.get("/settings/tokens/").content.decode()


def test_only_admins_make_and_revoke_tokens(operator: Client) -> None:
    made = writes.token_create(name="old")
    assert operator.post("/settings/tokens/", {"name": "x"}).status_code == 403
    assert operator.post(f"/settings/tokens/{made.token.pk}/revoke/").status_code == 403
    assert queries.token_check(made.secret, now()) is not None


def test_a_bad_token_form_names_the_field(admin: Client) -> None:
    page = admin.post("/settings/tokens/", {"name": "", "scopes": "everything"})
    assert page.status_code == 422
    assert len(queries.tokens_list()) == 0
    text = read(page.content.decode()).text
    assert "required" in text
    assert "everything" in text


def test_the_audit_trail_shows_who_did_what(robot: Agent, admin: Client) -> None:
    writes.audit(action="command.compact_fallback", result="refused: offline", by="eve <b>",
                 target="c1", reason="because <i>")  # fmt: skip
    text = read(admin.get("/audit/").content.decode()).text
    assert "eve <b>" in text
    assert "refused: offline" in text
    assert "because <i>" in text


def test_the_audit_trail_speaks_in_words_and_marks_what_was_refused(
    robot: Agent, admin: Client
) -> None:
    writes.audit(action="command.clear_latch", result="refused: no_latch", by="ada", target="c1")
    writes.audit(action="token.create", result="done", target="laptop (ab12)")
    html = admin.get("/audit/").content.decode()
    text = read(html).text
    assert "Pressed Clear latch" in text and "Made a token" in text and "the server" in text
    assert '<span class="tag warning">refused: no latch</span>' in html


def test_agents_say_what_they_can_do_and_what_got_lost(robot: Agent, viewer: Client) -> None:
    robot.chat("c1", 60_000)
    robot.report({"type": "gap", "chat": "c1", "count": 7, "reason": "outbox full"})
    text = read(viewer.get("/agents/").content.decode()).text
    for said in ("robot", "compact fallback", "text: excerpt", "7"):
        assert said in text, said


def test_before_any_agent_the_pages_say_how_to_begin(admin: Client) -> None:
    assert "No agent has connected" in admin.get("/agents/").content.decode()
    page = admin.get("/").content.decode()
    for said in ("Connect an agent", "ctxhealth tail", "up --demo"):
        assert said in page, said


def test_the_audit_trail_shows_what_became_of_a_command(robot: Agent, admin: Client) -> None:
    pk = robot.chat("c1", 60_000)
    command = writes.command_request(
        chat_id=pk, kind="compact_fallback", idempotency_key="k1", reason="full", by=None,
        by_name="ada", allowed=True,
    )  # fmt: skip
    assert "then" not in read(admin.get("/audit/").content.decode()).text
    robot.report({"type": "command.progress", "chat": "c1", "command": command.id,
                  "state": "refused", "reason": "busy"})  # fmt: skip
    html = admin.get("/audit/").content.decode()
    assert '<span class="tag neutral">queued</span>' in html
    assert "Refused" in read(html).text
    assert f"/commands/{command.id}/" in html
