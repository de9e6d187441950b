"""Settings, the audit trail, the agents."""

from __future__ import annotations

import re
from pathlib import Path

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from ctxhealth.store import judging, queries, writes
from ctxhealth.store.projects import default_project
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


def test_a_rotated_token_gives_a_new_one_and_the_old_one_an_end(admin: Client) -> None:
    old = writes.token_create(name="laptop", scopes=["ingest"], agent_name="robot")
    page = admin.post(f"/settings/tokens/{old.token.pk}/rotate/", {"hours": "48"})
    secret = re.search(r"ctxh_[0-9a-f]{12}_[\w-]{43}", page.content.decode())
    assert secret is not None
    new, before = queries.token_check(secret[0], now()), queries.token_check(old.secret, now())
    assert new is not None and before is not None
    assert (new.name, new.scopes, new.agent_name) == ("laptop", {"ingest"}, "robot")
    assert before.expires_at is not None
    assert abs(before.expires_at - now() - 48 * 3_600_000) < 60_000
    assert queries.token_check(old.secret, before.expires_at) is None


def test_a_token_rotated_without_overlap_is_revoked_at_once(admin: Client) -> None:
    old = writes.token_create(name="leaked")
    admin.post(f"/settings/tokens/{old.token.pk}/rotate/", {"hours": "0"})
    assert queries.token_check(old.secret, now()) is None


def test_a_revoked_token_is_not_rotated(admin: Client) -> None:
    old = writes.token_create(name="old")
    writes.token_revoke(token_id=old.token.pk)
    page = admin.post(f"/settings/tokens/{old.token.pk}/rotate/", {"hours": "1"})
    assert page.status_code == 422
    assert "revoked or expired already" in read(page.content.decode()).text
    assert len(queries.tokens_list()) == 1


def test_an_overlap_is_never_longer_than_the_token_would_have_lived(admin: Client) -> None:
    ends = now() + 3_600_000
    old = writes.token_create(name="short", expires_at=ends)
    admin.post(f"/settings/tokens/{old.token.pk}/rotate/", {"hours": "48"})
    row = next(row for row in queries.tokens_list() if row.id == old.token.pk)
    assert row.expires_at == ends


def test_somebody_new_gets_a_role_and_a_login_for_one_use(admin: Client) -> None:
    page = admin.post("/settings/people/", {"name": "eve", "role": "viewer"}).content.decode()
    link = re.search(r"/login/once/[\w-]+/", page)
    assert link is not None
    person = queries.person_get(username="eve")
    assert person is not None and person.role == "viewer"
    assert writes.login_link_use(token=link[0].split("/")[3]) is not None


def test_a_name_that_is_taken_is_refused(admin: Client) -> None:
    writes.user_give(username="eve", role="viewer")
    page = admin.post("/settings/people/", {"name": "eve", "role": "admin"})
    assert page.status_code == 422
    person = queries.person_get(username="eve")
    assert person is not None and person.role == "viewer"


def test_a_role_is_changed_and_a_person_disabled_and_enabled(admin: Client) -> None:
    user = writes.user_give(username="eve", role="viewer")
    admin.post(f"/settings/people/{user.pk}/role/", {"role": "operator"})
    assert queries.person_get(username="eve").role == "operator"  # type: ignore[union-attr]
    admin.post(f"/settings/people/{user.pk}/disable/")
    assert not queries.person_get(username="eve").active  # type: ignore[union-attr]
    assert "disabled" in read(admin.get("/settings/people/").content.decode()).text
    admin.post(f"/settings/people/{user.pk}/role/", {"role": "operator"})
    assert queries.person_get(username="eve").active  # type: ignore[union-attr]


def test_the_last_admin_stays_one(admin: Client) -> None:
    me = queries.person_get(username="a-admin")
    assert me is not None
    for address, data in ((f"{me.id}/role/", {"role": "viewer"}), (f"{me.id}/disable/", {})):
        page = admin.post(f"/settings/people/{address}", data)
        assert page.status_code == 409
        assert "last admin" in read(page.content.decode()).text
    still = queries.person_get(username="a-admin")
    assert still is not None and still.active and still.role == "admin"


def test_a_threshold_is_set_and_put_back(admin: Client) -> None:
    admin.post("/settings/thresholds/empty_replies/", {"value": "4", "reason": "slow", "set": "1"})
    text = read(admin.get("/settings/thresholds/").content.decode()).text
    assert "by a-admin: slow" in text
    assert judging.thresholds_set(default_project().pk) == {"empty_replies": 4.0}
    admin.post("/settings/thresholds/empty_replies/", {"reset": "1"})
    assert judging.thresholds_set(default_project().pk) == {}


def test_a_threshold_out_of_bounds_says_so_beside_its_field(admin: Client) -> None:
    page = admin.post("/settings/thresholds/empty_replies/", {"value": "400", "set": "1"})
    assert page.status_code == 422
    assert "1 to 20, not 400" in read(page.content.decode()).text
    page = admin.post("/settings/thresholds/empty_replies/", {"value": "many", "set": "1"})
    assert page.status_code == 422


def test_another_threshold_can_be_tried_before_it_is_set(admin: Client, robot: Agent) -> None:
    robot.chat("c", 60_000)
    address = "/settings/thresholds/huge_item_share/"
    page = admin.post(address, {"value": "10", "try": "1"}, follow=True)
    assert page.status_code == 200
    assert "trial" in page.redirect_chain[0][0] or "tried" in page.redirect_chain[0][0]
    assert judging.thresholds_set(default_project().pk) == {}


def test_operators_read_thresholds_and_windows_and_set_nothing(operator: Client) -> None:
    for name in ("thresholds", "windows", "about"):
        page = operator.get(f"/settings/{name}/")
        assert page.status_code == 200
        assert '<form method="post" action="/settings' not in page.content.decode()
    data = {"value": "4", "set": "1"}
    assert operator.post("/settings/thresholds/empty_replies/", data).status_code == 403
    assert operator.post("/settings/windows/", {"model": "m", "window": "5"}).status_code == 403
    for name in ("tokens", "people", "retention"):
        assert operator.get(f"/settings/{name}/").status_code == 403


def test_a_window_is_stated_changed_and_ended(admin: Client, robot: Agent) -> None:
    data = {"model": "m-*", "window": "90000", "max_input": "80000", "note": "served smaller"}
    assert admin.post("/settings/windows/", data).status_code == 302
    assert admin.post("/settings/windows/", {**data, "window": "95000"}).status_code == 302
    (row,) = queries.window_overrides()
    assert (row.window, row.by) == (95_000, "a-admin")
    page = admin.get(f"/settings/windows/?model={row.model}&window={row.window}").content.decode()
    assert 'value="95000"' in page
    assert admin.post(f"/settings/windows/{row.id}/end/").status_code == 302
    assert queries.window_overrides() == []


def test_a_window_that_makes_no_sense_names_its_field(admin: Client, robot: Agent) -> None:
    data = {"model": "m", "window": "5", "max_input": "6"}
    page = admin.post("/settings/windows/", data)
    assert page.status_code == 422
    assert "at most the window" in read(page.content.decode()).text
    page = admin.post("/settings/windows/", {"model": "m", "window": "5", "agent": "nobody"})
    assert "None is called" in read(page.content.decode()).text


def test_a_newer_model_table_is_put_in_use(
    admin: Client, settings: Settings, tmp_path: Path
) -> None:
    settings.CTXHEALTH_DATA_DIR = tmp_path
    judging.forget()
    table = b'{"openai": {"models": {"new-model": {"limit": {"context": 123456}}}}}'
    page = admin.post("/settings/windows/table/", {"files": SimpleUploadedFile("api.json", table)})
    assert page.status_code == 200
    assert "1 new" in read(page.content.decode()).text
    found = judging.table().lookup("new-model", None)
    assert found is not None and found.window == 123_456
    bad = SimpleUploadedFile("x.json", b"[1, 2")
    page = admin.post("/settings/windows/table/", {"files": bad})
    assert page.status_code == 422
    assert "x.json" in read(page.content.decode()).text
    judging.forget()


def test_retention_tells_what_would_go_before_it_is_switched_on(
    admin: Client, robot: Agent
) -> None:
    robot.chat("c", 60_000)
    assert "Everything is kept" in admin.get("/settings/retention/").content.decode()
    page = admin.post("/settings/retention/", {"days": "30", "try": "1"})
    assert "With 30 days: 0 chats" in read(page.content.decode()).text
    assert queries.retention_days(project=default_project().pk) is None
    admin.post("/settings/retention/", {"days": "30", "set": "1"})
    assert queries.retention_days(project=default_project().pk) == 30
    assert "after 30 days" in read(admin.get("/settings/retention/").content.decode()).text
    admin.post("/settings/retention/", {"off": "1"})
    assert queries.retention_days(project=default_project().pk) is None


def test_the_server_s_page_says_whether_anybody_may_act(viewer: Client, settings: Settings) -> None:
    assert "allowed" in read(viewer.get("/settings/about/").content.decode()).text
    settings.CTXHEALTH_READ_ONLY = True
    assert "read-only" in read(viewer.get("/settings/about/").content.decode()).text


def test_the_address_of_a_form_opened_as_a_page_says_so(admin: Client) -> None:
    answer = admin.get("/settings/thresholds/unanswered_ms/")
    assert answer.status_code == 405
    assert answer["Allow"] == "POST"
    assert "Nothing was done now" in read(answer.content.decode()).text


def test_a_token_is_revoked_by_a_second_press_only(admin: Client) -> None:
    made = writes.token_create(name="laptop")
    page = admin.get("/settings/tokens/").content.decode()
    before, _, after = page.partition(f"/settings/tokens/{made.token.pk}/revoke/")
    assert before.rindex('<details class="sure">') > before.rindex("</form>")
    assert "cut off at once, for good" in after[: after.index("</details>")]


def test_a_window_that_is_too_large_is_told_the_largest(admin: Client) -> None:
    answer = admin.post("/settings/windows/", {"model": "m", "window": "99999999999999999999"})
    assert answer.status_code == 422
    said = read(answer.content.decode()).text
    assert "Must be at most 9,007,199,254,740,991" in said


def test_a_refusal_keeps_the_case_of_its_words(admin: Client) -> None:
    answer = admin.post("/settings/people/", {"name": "<b>", "role": "viewer"})
    assert "Enter a valid username. This value" in read(answer.content.decode()).text
