"""Rules that change while the server runs: every chat is judged anew, exactly, in pauses."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ctxhealth.core.tunable import BY_NAME, TUNABLES, thresholds_with
from ctxhealth.store import judging, queries, rejudging, writes
from ctxhealth.store.models import AuditEntry, Judging
from ctxhealth.store.projects import default_project
from ctxhealth.store.upkeep import Upkeep
from ctxhealth.store.verify import verify
from ctxhealth.store.writer import Writer
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import event, exchange, message, opened, session
from tests.waiting import until

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("transactional_db")]


@pytest.fixture(autouse=True)
def fresh_rules() -> Iterator[None]:
    judging.forget()
    yield
    judging.forget()


def no_pause(_: float) -> bool:
    return False


def codes(chat: str = "c1") -> set[str]:
    found = queries.chat_find("a1", chat)
    assert found is not None
    return {finding.code for finding in found.summary.findings}


def one_huge(sender: Sender) -> None:
    """A chat whose one message takes 30% of the budget, which a limit of 20% flags."""
    at = connect_agent()
    sender.send(at, [opened(1, window=100_000), message(2, tokens=29_000), *exchange(3, 30_000)])


def test_a_threshold_counts_for_stored_chats_while_the_server_runs(sender: Sender) -> None:
    one_huge(sender)
    assert "huge_item" in codes()
    assert writes.threshold_set(name="huge_item_share", shown=50)
    assert rejudging.behind()
    assert rejudging.run_pass(no_pause) == 1
    assert "huge_item" not in codes()
    assert not rejudging.behind()
    assert verify().ok


def test_events_that_come_before_the_pass_reaches_their_chat_are_judged_by_it_too(
    sender: Sender,
) -> None:
    at = connect_agent()
    sender.send(at, [opened(1, window=100_000), message(2, tokens=29_000)])
    writes.threshold_set(name="huge_item_share", shown=50)
    sender.send(at, exchange(3, 30_000))
    rejudging.run_pass(no_pause)
    sender.send(at, [message(5, tokens=10), *exchange(6, 31_000)])
    assert "huge_item" not in codes()
    assert verify().ok


def test_a_chat_that_differs_in_nothing_shown_still_leaves_the_memory_of_the_old_rules(
    writer: Writer, sender: Sender
) -> None:
    at = connect_agent()
    sender.send(at, [opened(1, window=100_000)])
    writes.threshold_set(name="huge_item_share", shown=50)
    assert rejudging.run_pass(no_pause) == 0
    assert len(writer.states) == 0
    sender.send(at, [message(2, tokens=29_000), *exchange(3, 30_000)])
    assert "huge_item" not in codes()
    assert verify().ok


def test_a_pass_that_was_stopped_goes_on_where_it_was(sender: Sender) -> None:
    sender.send(connect_agent(), session(chats=3, messages=2))
    writes.threshold_set(name="jump_share", shown=30)
    rejudging.run_pass(lambda _: True)
    assert Judging.objects.get().done == 1
    status = queries.judging_status(project=default_project().pk)
    assert (status.pending, status.done, status.total) == (True, 1, 3)
    rejudging.run_pass(no_pause)
    assert Judging.objects.get().done == 3
    assert not queries.judging_status(project=default_project().pk).pending


def test_rules_that_change_during_a_pass_start_it_anew(sender: Sender) -> None:
    sender.send(connect_agent(), session(chats=3, messages=2))
    writes.threshold_set(name="jump_share", shown=30)
    once = iter([True])

    def change(_: float) -> bool:
        if next(once, False):
            writes.threshold_set(name="jump_share", shown=40)
        return False

    rejudging.run_pass(change)
    row = Judging.objects.get()
    assert (row.judged, row.wanted, row.done) == (2, 2, 3)


def test_the_server_notices_and_judges_by_itself(sender: Sender) -> None:
    one_huge(sender)
    upkeep = Upkeep()
    upkeep.start()
    try:
        writes.threshold_set(name="huge_item_share", shown=50)
        upkeep.kick()
        until(lambda: not rejudging.behind())
    finally:
        upkeep.stop()
    assert "huge_item" not in codes()


def test_events_arrive_all_the_while_and_none_is_lost(sender: Sender) -> None:
    at = connect_agent()
    sender.send(at, [opened(1, window=100_000), message(2, tokens=29_000), *exchange(3, 30_000)])
    done = threading.Event()

    def judge() -> None:
        for percent in (50, 20, 60, 30):
            writes.threshold_set(name="huge_item_share", shown=percent)
            rejudging.run_pass(no_pause)
        done.set()

    thread = threading.Thread(target=judge)
    thread.start()
    seq = 5
    while not done.is_set() and seq < 4_000:
        sender.send(at, [message(seq, tokens=10), *exchange(seq + 1, 30_000 + seq)])
        seq += 3
    thread.join(30)
    rejudging.run_pass(no_pause)
    report = verify()
    assert report.problems == []
    # The server's own word that the agent connected is one more.
    assert report.events == seq


def test_the_default_is_the_absence_of_a_word(sender: Sender) -> None:
    assert not writes.threshold_set(name="empty_replies", shown=BY_NAME["empty_replies"].default)
    assert writes.threshold_set(name="empty_replies", shown=4)
    assert writes.threshold_reset(name="empty_replies")
    assert not writes.threshold_reset(name="empty_replies")
    assert queries.settings_in_force(project=default_project().pk) == {}
    actions = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["setting.set", "setting.reset"]


@pytest.mark.parametrize(
    ("name", "shown", "message"),
    [
        ("nothing", 1.0, "^name: no threshold is called 'nothing'"),
        ("huge_item_share", 4.0, "^huge_item_share: 5 to 100 %, not 4"),
        ("empty_replies", 2.5, "^empty_replies: a whole number, not 2.5"),
        ("hung_ms", 3_601.0, "^hung_ms: 30 to 3600 s, not 3601"),
        ("undercount", float("nan"), "^undercount: "),
    ],
)
def test_a_threshold_out_of_bounds_is_refused_by_its_name(
    name: str, shown: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        writes.threshold_set(name=name, shown=shown)


@pytest.mark.parametrize("tunable", TUNABLES, ids=lambda tunable: tunable.name)
def test_every_default_lies_within_its_own_bounds_and_survives_its_unit(tunable: object) -> None:
    name = tunable.name  # type: ignore[attr-defined]
    stored = BY_NAME[name].stored(BY_NAME[name].default)
    assert thresholds_with({name: stored}) == thresholds_with({})


def test_an_override_set_while_the_server_runs_reaches_its_chats(sender: Sender) -> None:
    sender.send(connect_agent(), [opened(1, window=200_000, model="m"), *exchange(2, 150_000)])
    writes.window_override_set(model="m", window=160_000)
    assert rejudging.run_pass(no_pause) == 1
    found = queries.chat_find("a1", "c1")
    assert found is not None and found.summary.window.value == 160_000
    sender.send(connect_agent(), [event(1, "note", None, level="info", code="x", text="y")])
    assert verify().ok
