"""Commands: pressed once, refused with a reason, forward only, in the log and in the audit."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from ctxhealth.store import queries, writes
from ctxhealth.store.models import AuditEntry, Chat
from ctxhealth.store.queries import CommandRow
from ctxhealth.store.writes import OpenCommand, Refused
from ctxhealth.store.writes.agents import Connected
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import event, message, opened

pytestmark = [pytest.mark.db, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def at(sender: Sender) -> Connected:
    made = connect_agent()
    sender.send(made, [opened(1)])
    return made


@pytest.fixture
def operator(transactional_db: None) -> Any:
    return writes.user_ensure(username="ada", role="operator")


def press(by: Any, kind: str = "compact_fallback", key: str = "k1", **fields: Any) -> CommandRow:
    chat = Chat.objects.get().pk
    return writes.command_request(
        chat_id=chat, kind=kind, reason="it stalls", idempotency_key=key, by=by, **fields
    )


def progress(seq: int, row: CommandRow, state: str, **fields: Any) -> dict[str, Any]:
    return event(seq, "command.progress", "c1", command=row.id, state=state, **fields)


def test_a_press_is_queued_audited_and_in_the_log(at: Connected, operator: Any) -> None:
    row = press(operator)
    assert (row.state, row.by, row.expected_epoch, row.expected_compaction) == (
        "queued", "ada", "e1", 0,
    )  # fmt: skip
    entry = AuditEntry.objects.get(action="command.compact_fallback")
    assert (entry.result, entry.by_name, entry.reason) == ("queued", "ada", "it stalls")
    assert queries.chat_events(Chat.objects.get().pk)[-1].type == "server.command"


def test_the_same_key_is_the_same_command(at: Connected, operator: Any) -> None:
    assert press(operator).id == press(operator).id
    assert len(queries.chat_commands(Chat.objects.get().pk)) == 1


def test_a_second_press_meets_the_open_one(at: Connected, operator: Any) -> None:
    first = press(operator)
    with pytest.raises(OpenCommand) as met:
        press(operator, key="k2")
    assert met.value.command.id == first.id
    assert press(operator, "ping", "k3").state == "queued"


def test_a_viewer_may_not_press_and_it_is_audited(at: Connected) -> None:
    viewer = writes.user_ensure(username="vic", role="viewer")
    with pytest.raises(Refused) as refused:
        press(viewer)
    assert refused.value.reason == "no_right"
    assert AuditEntry.objects.get(action="command.compact_fallback").result == "refused: no_right"


@pytest.mark.parametrize(
    ("kind", "args", "reason"),
    [
        ("rescue", {}, "unsupported"),
        ("dance", {}, "bad"),
        ("clear_latch", {}, "no_latch"),
        ("clear_latch", {"latch": "l9"}, "no_latch"),
        ("ping", {"x": "y" * 20_000}, "bad"),
    ],
)
def test_what_cannot_work_is_refused_with_a_reason(
    at: Connected, operator: Any, kind: str, args: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Refused) as refused:
        press(operator, kind, args=args)
    assert refused.value.reason == reason


def test_an_offline_or_read_only_or_closed_chat_says_so(
    at: Connected, operator: Any, sender: Sender
) -> None:
    writes.agent_disconnect(agent=at.stream.agent, conn_no=at.conn_no, reason="gone")
    with pytest.raises(Refused, match="not connected"):
        press(operator)
    connect_agent(read_only=True)
    with pytest.raises(Refused, match="read-only"):
        press(operator)
    again = connect_agent()
    sender.send(again, [event(2, "chat.closed", "c1")])
    with pytest.raises(Refused, match="closed"):
        press(operator)


def test_a_latch_can_be_cleared_while_it_is_open(
    at: Connected, operator: Any, sender: Sender
) -> None:
    sender.send(at, [event(2, "latch.set", "c1", latch="l1", scope="turn", kind="structural")])
    row = press(operator, "clear_latch", args={"latch": "l1"})
    assert row.expected_latch == "l1"


def test_progress_goes_forward_only(at: Connected, operator: Any, sender: Sender) -> None:
    row = press(operator)
    steps = ["received", "waiting", "started", "received", "succeeded", "failed", "unknown"]
    states = []
    for number, state in enumerate(steps):
        sender.send(at, [progress(2 + number, row, state, reason=f"step {number}")])
        found = queries.command_get(row.id)
        assert found is not None
        states.append(found.state)
    assert states == [
        "received", "waiting", "started", "started", "succeeded", "succeeded", "succeeded",
    ]  # fmt: skip


def test_another_agents_progress_moves_nothing(
    at: Connected, operator: Any, sender: Sender
) -> None:
    row = press(operator)
    other = connect_agent("a2")
    sender.send(other, [opened(1, "c1"), progress(2, row, "succeeded")])
    found = queries.command_get(row.id)
    assert found is not None and found.state == "queued"


def test_what_is_not_received_in_time_expires_and_a_lost_lease_is_unknown(
    at: Connected, operator: Any, sender: Sender
) -> None:
    late = press(operator)
    assert writes.command_expire_due(now=late.deliver_by - 1) == 0
    assert writes.command_expire_due(now=late.deliver_by) == 1
    lost = press(operator, key="k2")
    sender.send(at, [progress(2, lost, "started")])
    found = queries.command_get(lost.id)
    assert found is not None and found.lease_until is not None
    writes.command_expire_due(now=found.lease_until)
    assert [row.state for row in queries.chat_commands(Chat.objects.get().pk)] == [
        "unknown", "expired",
    ]  # fmt: skip


def test_a_command_is_taken_once_per_connection_and_again_by_the_next(
    at: Connected, operator: Any
) -> None:
    row = press(operator)
    agent = at.stream.agent
    (frame,) = writes.commands_take(agent=agent, conn_no=at.conn_no)
    assert frame.id == row.id and frame.chat == "c1" and frame.reason == "it stalls"
    assert writes.commands_take(agent=agent, conn_no=at.conn_no) == []
    again = connect_agent()
    assert writes.commands_take(agent=agent, conn_no=at.conn_no) == []
    assert [frame.id for frame in writes.commands_take(agent=agent, conn_no=again.conn_no)] == [
        row.id
    ]


def test_cancelling_is_at_once_before_it_is_sent_and_asked_for_after(
    at: Connected, operator: Any
) -> None:
    assert writes.command_cancel(command_id=press(operator).id, by=operator).state == "cancelled"
    sent = press(operator, key="k2")
    writes.commands_take(agent=at.stream.agent, conn_no=at.conn_no)
    row = writes.command_cancel(command_id=sent.id, by=operator)
    assert row.state == "sent" and row.cancel_asked_at is not None
    assert queries.commands_cancelling(at.stream.agent, at.conn_no) == [sent.id]


def test_what_started_or_ended_cannot_be_cancelled(
    at: Connected, operator: Any, sender: Sender
) -> None:
    row = press(operator)
    sender.send(at, [progress(2, row, "started")])
    with pytest.raises(Refused) as refused:
        writes.command_cancel(command_id=row.id, by=operator)
    assert refused.value.reason == "started"
    sender.send(at, [progress(3, row, "succeeded"), message(4)])
    with pytest.raises(Refused) as refused:
        writes.command_cancel(command_id=row.id, by=operator)
    assert refused.value.reason == "ended"


def test_a_read_only_server_presses_nothing(at: Connected, operator: Any, settings: Any) -> None:
    settings.CTXHEALTH_READ_ONLY = True
    with pytest.raises(Refused) as refused:
        press(operator)
    assert refused.value.reason == "server_read_only"


def test_roles_are_the_strongest_group(transactional_db: None) -> None:
    from ctxhealth.store import people

    user = writes.user_ensure(username="eva", role="viewer")
    assert people.role_of(user) == "viewer" and not people.can_operate(user)
    writes.user_set_role(user=user, role="admin")
    assert people.can_admin(User.objects.get(username="eva"))
    user.is_active = False
    assert people.role_of(user) is None


def test_a_ticked_continue_is_pressed_when_the_first_command_succeeded(
    at: Connected, operator: Any, sender: Sender
) -> None:
    able = connect_agent(commands=["compact_fallback", "continue"])
    row = press(operator, args={"then": "continue"})
    sender.send(able, [progress(2, row, "received"), progress(3, row, "succeeded")])
    newest, first = queries.chat_commands(Chat.objects.get().pk)
    assert (first.state, newest.kind, newest.state, newest.by) == (
        "succeeded", "continue", "queued", "ada",
    )  # fmt: skip
