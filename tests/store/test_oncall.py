"""The shift, the hand-over note, and silences that expire by themselves."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from ctxhealth.store import queries, writes
from tests.live.world import Agent, now

pytestmark = pytest.mark.django_db
HOUR = 3_600_000


@pytest.fixture
def ada(db: None) -> Any:
    return writes.user_ensure(username="ada", role="operator")


def troubled(robot: Agent, *names: str) -> None:
    """Chats over their budget: one cause."""
    for name in names:
        robot.chat(name, 199_500, window=200_000, reserve=8_000)


def the_cause() -> queries.OpenCause:
    (cause,) = queries.shift(since=now() - HOUR).causes
    return cause


def test_chats_of_one_cause_stand_together_until_somebody_takes_them(ada: Any) -> None:
    troubled(Agent(), "c1", "c2")
    cause = the_cause()
    assert {chat.title for chat in cause.chats} == {"Chat c1", "Chat c2"}
    assert cause.group.owner == "" and cause.owners == []
    writes.group_own(group_id=cause.group.id, owner=ada, by=ada)
    assert the_cause().group.owner == "ada"


def test_a_silence_counts_its_chats_no_more_and_still_shows_them(ada: Any) -> None:
    troubled(Agent(), "c1", "c2")
    before = queries.counts_by_severity()
    assert before["critical"] == 2 and queries.incidents_open_count() == 2
    writes.silence_set(group_id=the_cause().group.id, minutes=30, reason="known", by=ada)
    assert queries.counts_by_severity()["critical"] == 0
    assert queries.incidents_open_count() == 0
    assert len(queries.board_page().rows) == 2
    silence = the_cause().silence
    assert silence is not None and (silence.by, silence.reason) == ("ada", "known")


def test_a_silence_ends_by_itself(ada: Any) -> None:
    troubled(Agent(), "c1")
    writes.silence_set(group_id=the_cause().group.id, minutes=30, reason="known", by=ada)
    assert len(queries.silences_active(now=now() + 29 * 60_000)) == 1
    later = now() + 31 * 60_000
    assert queries.silences_active(now=later) == []
    assert queries.silenced_groups(now=later) == frozenset()


def test_a_silence_can_be_ended_before(ada: Any) -> None:
    troubled(Agent(), "c1")
    silence = writes.silence_set(group_id=the_cause().group.id, minutes=30, reason="x", by=ada)
    writes.silence_end(silence_id=silence, by=ada)
    assert queries.counts_by_severity()["critical"] == 1
    with pytest.raises(writes.Refused, match="over already"):
        writes.silence_end(silence_id=silence, by=ada)


def test_a_second_silence_takes_the_place_of_the_first(ada: Any) -> None:
    troubled(Agent(), "c1")
    group = the_cause().group.id
    writes.silence_set(group_id=group, minutes=240, reason="first", by=ada)
    writes.silence_set(group_id=group, minutes=15, reason="second", by=ada)
    assert [row.reason for row in queries.silences_active()] == ["second"]


def test_another_cause_is_heard_as_before(ada: Any) -> None:
    robot = Agent()
    troubled(robot, "c1")
    writes.silence_set(group_id=the_cause().group.id, minutes=30, reason="x", by=ada)
    robot.chat("c2", 50_000)
    robot.report({"type": "agent.stopped", "chat": "c2", "count": 5, "limit": 5,
                  "reason": "unusable replies"})  # fmt: skip
    assert queries.counts_by_severity()["critical"] == 1


@pytest.mark.parametrize(
    ("minutes", "reason", "said"),
    [(0, "x", "1 to 1,440 minutes"), (9_999, "x", "1 to 1,440 minutes"), (30, "  ", "reason"),
     (30, "x" * 501, "At most 500"), (30, "a\x00b", "NUL")],
)  # fmt: skip
def test_a_silence_without_sense_is_refused(ada: Any, minutes: int, reason: str, said: str) -> None:
    troubled(Agent(), "c1")
    with pytest.raises(writes.Refused, match=said):
        writes.silence_set(group_id=the_cause().group.id, minutes=minutes, reason=reason, by=ada)
    assert queries.silences_active() == []
    assert queries.audit_page(action="silence.set").rows[0].result == "refused: bad"


def test_nobody_silences_what_is_not_open(ada: Any) -> None:
    with pytest.raises(writes.Refused, match="Nothing is in trouble"):
        writes.silence_set(group_id=77, minutes=30, reason="x", by=ada)


def test_viewers_and_read_only_servers_write_nothing(ada: Any, settings: Settings) -> None:
    troubled(Agent(), "c1")
    viewer = writes.user_ensure(username="vic", role="viewer")
    for by in (viewer, ada):
        settings.CTXHEALTH_READ_ONLY = by is ada
        with pytest.raises(writes.Refused):
            writes.handover_save(text="hello", by=by)
        with pytest.raises(writes.Refused):
            writes.silence_set(group_id=the_cause().group.id, minutes=30, reason="x", by=by)
    assert queries.handover_notes() == []


def test_the_note_keeps_its_versions_and_is_audited(ada: Any) -> None:
    first = writes.handover_save(text="quiet night", by=ada)
    writes.handover_save(text="not so quiet", seen=first, by=ada)
    assert [row.text for row in queries.handover_notes()] == ["not so quiet", "quiet night"]
    assert [row.result for row in queries.audit_page(action="oncall.note").rows] == ["done"] * 2


def test_a_note_that_changed_meanwhile_is_not_written_over(ada: Any) -> None:
    eve = writes.user_ensure(username="eve", role="operator")
    first = writes.handover_save(text="one", by=ada)
    writes.handover_save(text="two", seen=first, by=eve)
    with pytest.raises(writes.Refused, match="eve saved the note meanwhile") as refused:
        writes.handover_save(text="three", seen=first, by=ada)
    assert refused.value.reason == "changed"
    assert queries.handover_notes()[0].text == "two"


def press(robot: Agent, pk: int, chat: str, key: str, state: str, reason: str = "") -> str:
    command = writes.command_request(
        chat_id=pk, kind="compact_fallback", idempotency_key=key, reason="full", by=None,
        by_name="ada", allowed=True,
    )  # fmt: skip
    robot.report({"type": "command.progress", "chat": chat, "command": command.id,
                  "state": state, "reason": reason or None})  # fmt: skip
    return command.id


def test_a_press_that_did_not_help_is_left_over(ada: Any) -> None:
    robot = Agent()
    pk = robot.chat("c1", 199_500, window=200_000, reserve=8_000)
    press(robot, pk, "c1", "k1", "refused", "busy")
    shift = queries.shift(since=now() - HOUR)
    (left,) = shift.unresolved
    assert (left.command.state, left.chat_title) == ("refused", "Chat c1")
    assert left.incident is not None


def test_of_several_presses_on_one_chat_the_newest_counts(ada: Any) -> None:
    robot = Agent()
    pk = robot.chat("c1", 199_500, window=200_000, reserve=8_000)
    press(robot, pk, "c1", "k1", "refused", "busy")
    second = press(robot, pk, "c1", "k2", "failed", "disk")
    assert [left.command.id for left in queries.shift(since=now() - HOUR).unresolved] == [second]


def test_what_was_before_the_shift_is_left_out(ada: Any) -> None:
    robot = Agent()
    pk = robot.chat("c1", 60_000)
    press(robot, pk, "c1", "k1", "refused", "busy")
    assert queries.shift(since=now() + 1_000).pressed == []
    assert len(queries.shift(since=now() - HOUR).pressed) == 1
