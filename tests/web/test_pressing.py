"""The dialog, the press, the receipt."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from ctxhealth.store import queries
from tests.live.world import Agent
from tests.web.markup import read

HTMX = {"HX-Request": "true"}


def path(pk: int, kind: str = "compact_fallback") -> str:
    return f"/chats/{pk}/act/{kind}/"


def fields(
    client: Client, pk: int, kind: str = "compact_fallback", query: str = ""
) -> dict[str, str]:
    """What the dialog's form would send as it stands."""
    html = client.get(path(pk, kind) + query, headers=HTMX).content.decode()
    inputs = [e.attributes for e in read(html).elements if e.tag == "input"]
    return {str(i["name"]): str(i.get("value") or "") for i in inputs
            if i.get("type") != "checkbox" or "checked" in i}  # fmt: skip


def press(client: Client, pk: int, kind: str = "compact_fallback", **changes: str) -> Any:
    data = {**fields(client, pk, kind), "reason": "too full", **changes}
    return client.post(path(pk, kind), data, headers=HTMX)


def latched(robot: Agent) -> int:
    pk = robot.chat("c1", 60_000)
    robot.report(
        {"type": "latch.set", "chat": "c1", "latch": "l/1 <b>", "scope": "turn",
         "kind": "structural", "reason": "nothing to fold"}
    )  # fmt: skip
    return pk


def described(robot: Agent) -> int:
    """A chat whose history is known item by item."""
    pk = robot.chat("c1", 150_000, system=4_000, tools=2_000, reserve=4_096,
                    trigger={"tokens": 140_000, "scope": "prompt"})  # fmt: skip
    order = []
    for topic in range(30):
        order += [
            {"id": f"u{topic}", "role": "user", "kind": "text", "tokens": 300, "in": f"t{topic}"},
            {"id": f"a{topic}", "role": "assistant", "kind": "text", "tokens": 4_300,
             "in": f"t{topic}"},
        ]  # fmt: skip
    order.append({"id": "last", "role": "user", "kind": "text", "tokens": 200, "in": "current"})
    robot.report({
        "type": "history.snapshot", "chat": "c1", "revision": "r1", "system": 4_000,
        "tools": 2_000, "extras": 0,
        "topics": [{"id": f"t{i}", "tokens": 4_600, "messages": 2} for i in range(30)],
        "current": {"tokens": 200, "messages": 1}, "order": order,
    })  # fmt: skip
    return pk


def test_the_dialog_shows_what_the_fallback_would_give(robot: Agent, operator: Client) -> None:
    pk = described(robot)
    text = read(operator.get(path(pk), headers=HTMX).content.decode()).text
    assert "144,200" in text  # before: fixed part 6,000, topics 138,000, current 200
    assert "112,000" in text  # target: 0.8 x the trigger
    assert "Oldest topics to extracts" in text
    assert "Kept word for word" in text
    assert "lossy" in text
    assert "Backup" in text


def test_a_history_that_was_not_reported_gives_no_promise(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    text = read(operator.get(path(pk), headers=HTMX).content.decode()).text
    assert "cannot be computed here" in text


def test_opening_the_dialog_presses_nothing(robot: Agent, operator: Client) -> None:
    pk = described(robot)
    operator.get(path(pk))
    assert queries.chat_commands(pk) == []


def test_a_press_is_queued_with_its_fence_its_reason_and_an_audit_row(
    robot: Agent, operator: Client
) -> None:
    pk = robot.chat("c1", 60_000)
    response = press(operator, pk)
    assert response.status_code == 200
    (command,) = queries.chat_commands(pk)
    assert (command.kind, command.reason, command.by) == (
        "compact_fallback", "too full", "a-operator")  # fmt: skip
    assert command.expected_compaction == 0
    assert f"/commands/{command.id}/" in response.content.decode()
    assert queries.audit_page().rows[0].result == "queued"


def test_pressing_twice_is_pressing_once(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    data = {**fields(operator, pk), "reason": "too full"}
    for _ in range(2):
        assert operator.post(path(pk), data, headers=HTMX).status_code == 200
    assert len(queries.chat_commands(pk)) == 1


def test_without_a_script_the_press_leads_back_to_the_chat(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    page = operator.get(path(pk)).content.decode()
    assert "<h1" in page
    response = operator.post(path(pk), {**fields(operator, pk), "reason": "x"})
    assert response.headers["Location"] == f"/chats/{pk}/"


def test_the_second_operator_sees_the_first_ones_receipt(robot: Agent, sign_in: Any) -> None:
    pk = robot.chat("c1", 60_000)
    second = sign_in("admin")
    ready = {**fields(second, pk), "reason": "me too"}
    press(sign_in("operator"), pk)
    response = second.post(path(pk), ready, headers=HTMX)
    assert response.status_code == 409
    text = read(response.content.decode()).text
    assert "Somebody was first" in text
    assert "a-operator" in text
    assert len(queries.chat_commands(pk)) == 1


def test_a_compaction_since_the_dialog_was_opened_refuses_the_press(
    robot: Agent, operator: Client
) -> None:
    pk = robot.chat("c1", 60_000)
    ready = {**fields(operator, pk), "reason": "too full"}
    robot.report({"type": "compaction.finished", "chat": "c1", "attempt": "a1",
                  "reported": "ok", "before": 60_000, "after": 20_000})  # fmt: skip
    response = operator.post(path(pk), ready, headers=HTMX)
    assert response.status_code == 409
    assert "look again" in response.content.decode()
    assert queries.chat_commands(pk) == []
    assert queries.audit_page().rows[0].result == "refused: stale page"


def test_a_reason_is_asked_for(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    response = press(operator, pk, reason="  ")
    assert response.status_code == 422
    assert "audit trail" in response.content.decode()
    assert queries.chat_commands(pk) == []


def test_what_the_agent_cannot_do_is_refused_in_words(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    html = operator.get(path(pk, "repair_pairs"), headers=HTMX).content.decode()
    assert "does not offer it" in html
    assert "<form" not in html
    data = {"reason": "x", "idempotency_key": "k", "seen": "0"}
    response = operator.post(path(pk, "repair_pairs"), data, headers=HTMX)
    assert response.status_code == 422
    assert queries.chat_commands(pk) == []


def test_what_destroys_work_asks_twice(operator: Client, db: None) -> None:
    robot = Agent("dangerous", commands=["stop_turn"])
    pk = robot.chat("c1", 60_000)
    assert press(operator, pk, "stop_turn").status_code == 422
    assert queries.chat_commands(pk) == []
    assert press(operator, pk, "stop_turn", sure="on").status_code == 200


def test_clear_latch_names_the_latch_and_compacts_then(robot: Agent, operator: Client) -> None:
    pk = latched(robot)
    data = fields(operator, pk, "clear_latch", "?latch=l%2F1%20%3Cb%3E")
    assert data["latch"] == "l/1 <b>"
    assert operator.post(path(pk, "clear_latch"), data, headers=HTMX).status_code == 200
    (command,) = queries.chat_commands(pk)
    assert command.args == {"latch": "l/1 <b>", "then": "compact"}


def test_then_continue_is_offered_where_a_user_waits_and_travels_with_the_command(
    robot: Agent, operator: Client
) -> None:
    pk = robot.chat("c1", 60_000)
    assert "then" not in fields(operator, pk)
    robot.report({"type": "turn.started", "chat": "c1", "turn": "t9", "kind": "user"})
    assert fields(operator, pk)["then"] == "on"
    press(operator, pk)
    assert queries.chat_commands(pk)[0].args == {"then": "continue"}


def test_what_was_to_follow_is_queued_when_the_first_has_succeeded(
    robot: Agent, operator: Client
) -> None:
    pk = robot.chat("c1", 60_000)
    robot.report({"type": "turn.started", "chat": "c1", "turn": "t9", "kind": "user"})
    press(operator, pk)
    first = queries.chat_commands(pk)[0]
    for state in ("received", "started", "succeeded"):
        robot.report({"type": "command.progress", "chat": "c1", "command": first.id,
                      "state": state, "before": 60_000, "after": 20_000})  # fmt: skip
    second, _ = queries.chat_commands(pk)
    assert (second.kind, second.state, second.by) == ("continue", "queued", "a-operator")
    assert [row.action for row in queries.audit_page().rows[:2]] == [
        "command.continue", "command.compact_fallback"]  # fmt: skip
    text = read(operator.get(f"/commands/{first.id}/", headers=HTMX).content.decode()).text
    assert "60,000 → 20,000" in text
    assert "Continue" in text


def test_nothing_follows_a_command_that_failed(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    robot.report({"type": "turn.started", "chat": "c1", "turn": "t9", "kind": "user"})
    press(operator, pk)
    first = queries.chat_commands(pk)[0]
    robot.report({"type": "command.progress", "chat": "c1", "command": first.id,
                  "state": "failed", "reason": "disk full"})  # fmt: skip
    assert len(queries.chat_commands(pk)) == 1


def test_a_receipt_asks_again_until_it_is_final(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    press(operator, pk)
    command = queries.chat_commands(pk)[0]
    receipt = f"/commands/{command.id}/"
    assert "every 1s" in operator.get(receipt, headers=HTMX).content.decode()
    assert operator.post(f"{receipt}cancel/", headers=HTMX).status_code == 204
    final = operator.get(receipt, headers=HTMX).content.decode()
    assert "every 1s" not in final
    assert "Cancelled" in final
    assert operator.post(f"{receipt}cancel/", headers=HTMX).status_code == 400


def test_a_viewer_cannot_cancel(robot: Agent, operator: Client, viewer: Client) -> None:
    pk = robot.chat("c1", 60_000)
    press(operator, pk)
    command = queries.chat_commands(pk)[0]
    assert viewer.post(f"/commands/{command.id}/cancel/").status_code == 403
    assert queries.chat_commands(pk)[0].state == "queued"


@pytest.mark.parametrize("kind", ["explode", "ping", "compact-fallback"])
def test_a_kind_that_has_no_button_has_no_page(robot: Agent, operator: Client, kind: str) -> None:
    assert operator.get(path(robot.chat("c1"), kind)).status_code == 404


def test_a_press_without_the_csrf_token_is_refused_in_words(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    data = {**fields(operator, pk), "reason": "x", "csrfmiddlewaretoken": ""}
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies
    response = strict.post(path(pk), data)
    assert response.status_code == 403
    assert "reload" in response.content.decode()
    assert queries.chat_commands(pk) == []


def test_each_dialog_has_its_own_key(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    keys = {fields(operator, pk)["idempotency_key"] for _ in range(3)}
    assert len(keys) == 3
    assert all(re.fullmatch(r"[\w-]{32}", key) for key in keys)


def test_a_plan_over_counts_that_see_too_little_is_corrected_before_it_is_shown(
    robot: Agent, operator: Client
) -> None:
    pk = described(robot)
    for number in range(4):
        robot.report(
            {"type": "request.sent", "chat": "c1", "request": f"q{number}", "local": 144_200},
            {"type": "model.replied", "chat": "c1", "request": f"q{number}", "finish": "stop",
             "usage": {"dialect": "openai", "input": 190_000, "output": 1},
             "content": {"text_chars": 5}},
        )  # fmt: skip
    text = read(operator.get(path(pk), headers=HTMX).content.decode()).text
    # 144,200 of the agent's, told in the provider's tokens; items are rounded one by one.
    assert re.search(r"before(189,9\d\d|190,0\d\d)after", text)
    assert "times 1.32" in text
    assert "exact" not in text


def test_a_fallback_that_would_free_nothing_says_so_and_is_not_offered_as_help(
    robot: Agent, operator: Client
) -> None:
    pk = robot.chat("c1", 20_000, trigger={"tokens": 140_000, "scope": "prompt"})
    robot.report({
        "type": "history.snapshot", "chat": "c1", "revision": "r1", "system": 0, "tools": 0,
        "extras": 0, "topics": [], "current": {"tokens": 20_000, "messages": 1},
        "order": [{"id": "u1", "role": "user", "kind": "text", "tokens": 20_000,
                   "in": "current"}],
    })  # fmt: skip
    html = operator.get(path(pk), headers=HTMX).content.decode()
    text = read(html).text
    assert "Nothing to free: 20,000 tokens are within the target of 112,000 already." in text
    assert "Force anyway" in text
    assert "primary" not in html


def test_the_dialogs_receipt_moves_with_the_page(robot: Agent, operator: Client) -> None:
    html = press(operator, described(robot)).content.decode()
    assert "ctx:changed from:document" in html
