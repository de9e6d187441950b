"""Incidents as rows: one per trouble, one group per cause, kept whatever is judged later."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctxhealth.core.state import FOLD_VERSION
from ctxhealth.store import queries, rejudging, startup, writes
from ctxhealth.store.incident_rows import SOON_MS, decode_view
from ctxhealth.store.models import CauseGroup, Chat, Event, Incident
from ctxhealth.store.through import call
from ctxhealth.store.verify import rebuild, verify
from ctxhealth.store.writer import Writer
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import START, exchange
from tests.store.troubles import Told

pytestmark = pytest.mark.db


@pytest.fixture
def admin(writer: Writer) -> Any:
    return writes.user_ensure(username="mia", role="admin")


def stopped(chat: str = "c1") -> Told:
    return Told().opens(chat).asks(chat).dead_summarizer(chat, 3).stops(chat)


def test_a_chat_in_trouble_has_one_open_incident_with_its_root(sender: Sender) -> None:
    sender.send(connect_agent(), stopped().take())
    page = queries.incident_list()
    assert [(row.root, row.state, row.closed_at) for row in page.rows] == [
        ("summarizer_empty", "stopped", None)
    ]
    assert page.counts == {"open": 1, "closed": 0, "all": 1, "reviews": 0}
    detail = queries.incident_detail(page.rows[0].id)
    assert detail is not None and detail.view is not None
    assert [(link.code, link.count) for link in detail.view.chain if link.root] == [
        ("summarizer_empty", 3)
    ]
    assert detail.view.burnt_tokens == 29_100
    assert detail.view == detail.judged
    row = queries.incident_of(Chat.objects.get().pk)
    assert row is not None and row.id == page.rows[0].id
    assert queries.chat_get(row.chat).summary.incident == row.opened_seq  # type: ignore[union-attr]


def test_it_closes_by_itself_after_three_calm_requests_and_its_group_with_it(
    sender: Sender,
) -> None:
    agent, told = connect_agent(), stopped()
    sender.send(agent, told.take())
    sender.send(agent, told.folds("c1").works("c1", 2).take())
    assert Incident.objects.get().closed_at is None
    sender.send(agent, told.works("c1", 1, "t4").take())
    row, group = Incident.objects.get(), CauseGroup.objects.get()
    assert row.closed_at is not None and row.closed_seq is not None
    assert (group.closed_at, group.count) == (row.closed_at, 1)
    view = decode_view(row.view)
    assert view is not None and view.closed_how == "requests"
    assert view.answered_at is not None and view.recovered_at is not None
    assert queries.cause_groups_open() == []
    assert queries.incident_of(row.chat_id) is None
    assert verify().problems == []


def test_a_dead_utility_model_is_one_cause_for_200_chats_and_alerts_once(sender: Sender) -> None:
    agents = [connect_agent(f"a{number}") for number in range(4)]
    chats = [f"c{number}" for number in range(50)]
    for agent in agents:
        told = Told()
        for chat in chats:
            told.opens(chat).asks(chat).dead_summarizer(chat)
        sender.send(agent, told.take())
    assert Incident.objects.filter(closed_at=None).count() == 200
    group = CauseGroup.objects.get()
    assert group.alerted_at is not None
    found = queries.cause_groups_open()
    assert [(len(row.chats), row.waiting, row.count) for row in found] == [(200, 200, 200)]
    assert found[0].words == "The utility model glm-flash (zai) answers nothing"
    alerted = group.alerted_at
    told = Told().opens("late").asks("late").dead_summarizer("late")
    sender.send(connect_agent("another"), told.take())
    assert CauseGroup.objects.get().alerted_at == alerted


def test_another_error_of_the_same_summarizer_is_another_cause(sender: Sender) -> None:
    told = Told().opens("c1").asks("c1").dead_summarizer("c1")
    told.opens("c2").asks("c2").dead_summarizer("c2", error="quota")
    sender.send(connect_agent(), told.take())
    assert CauseGroup.objects.count() == 2


def test_what_lies_within_one_agent_is_no_cause_of_another_s_chats(sender: Sender) -> None:
    for name in ("a1", "a2"):
        told = Told().opens("c1").asks("c1").stops("c1").opens("c2").asks("c2").stops("c2")
        sender.send(connect_agent(name), told.take())
    found = queries.cause_groups_open()
    assert sorted((row.cause.agent, len(row.chats)) for row in found) == [("a1", 2), ("a2", 2)]


class TestACauseThatShowsLater:
    """An overflow opens the incident; then the summarizer turns out to be dead."""

    def overflown(self, *chats: str) -> Told:
        told = Told()
        for chat in chats:
            told.opens(chat).asks(chat)
            told.say("request.sent", chat, request=f"r-{chat}")
            told.say("model.failed", chat, request=f"r-{chat}", error="overflow", status=400)
        return told

    def test_a_group_of_one_is_renamed_and_alerts_no_second_time(self, sender: Sender) -> None:
        agent, told = connect_agent(), self.overflown("c1")
        sender.send(agent, told.take())
        CauseGroup.objects.update(alerted_at=1)
        before = CauseGroup.objects.get()
        assert before.key.startswith("agent/over_window")
        sender.send(agent, told.dead_summarizer("c1", 3).take())
        after = CauseGroup.objects.get()
        assert (after.pk, after.alerted_at) == (before.pk, 1)
        assert after.key == "summarizer_failing/glm-flash/zai/empty"
        assert queries.cause_groups_open()[0].words.startswith("The utility model glm-flash")
        sender.writer.stop()
        assert verify().problems == []

    def test_chats_of_one_group_meet_in_the_new_one_and_the_old_one_goes(
        self, sender: Sender
    ) -> None:
        agent, told = connect_agent(), self.overflown("c1", "c2", "c3")
        sender.send(agent, told.take())
        CauseGroup.objects.update(alerted_at=1)
        for chat in ("c1", "c2"):
            sender.send(agent, told.dead_summarizer(chat, 3).take())
        found = CauseGroup.objects.order_by("id")
        assert [(group.count, group.alerted_at) for group in found] == [(1, 1), (2, 1)]
        sender.send(agent, told.dead_summarizer("c3", 3).take())
        assert [(group.count, group.alerted_at) for group in CauseGroup.objects.all()] == [(3, 1)]
        sender.writer.stop()
        assert verify().problems == []


class TestARestartOfTheServer:
    def restarted(self, sender: Sender) -> Writer:
        sender.writer.stop()
        startup.settle()
        writer = Writer()
        writer.start()
        return writer

    def test_a_redeploy_opens_nothing_and_waits_90_seconds_for_agents(self, sender: Sender) -> None:
        told = Told().opens("c1").asks("c1")
        sender.send(connect_agent(), told.take())
        writer = self.restarted(sender)
        try:
            chat = Chat.objects.get()
            gone = Event.objects.get(type="server.disconnected").at
            assert (chat.connection, chat.deadline) == ("late", gone + 90_000)
            assert writes.chats_tick(now=gone + 89_000) == 0
            assert Incident.objects.count() == 0
        finally:
            writer.stop()

    def test_time_that_passed_while_the_server_was_away_does_not_count(
        self, sender: Sender
    ) -> None:
        told, agent = Told().opens("c1").asks("c1"), connect_agent()
        sender.send(agent, told.take())
        writes.agent_disconnect(agent=agent.stream.agent, conn_no=agent.conn_no, reason="bye")
        writes.chats_announce(agent=agent.stream.agent, conn_no=agent.conn_no, connected=False)
        sender.writer.stop()
        Event.objects.filter(type="server.disconnected").update(at=START, received=START)
        call(rebuild, Chat.objects.get().pk)
        assert Chat.objects.get().deadline == START + 45_000
        startup.settle()
        gone = Event.objects.filter(type="server.disconnected").latest("id").at
        assert gone > START and Chat.objects.get().deadline == gone + 90_000
        startup.settle()
        assert Event.objects.filter(type="server.disconnected").count() == 2
        assert verify().problems == []


class TestTheSameCauseAgain:
    def closed_and_again(self, sender: Sender, earlier_ms: int) -> list[CauseGroup]:
        agent, told = connect_agent(), stopped()
        sender.send(agent, told.take())
        sender.send(agent, told.folds("c1").works("c1", 3).take())
        group = CauseGroup.objects.get()
        assert group.closed_at is not None
        for row in (group, Incident.objects.get()):
            row.opened_at -= earlier_ms
            assert row.closed_at is not None
            row.closed_at -= earlier_ms
            row.save()
        CauseGroup.objects.update(alerted_at=1)
        sender.send(agent, told.asks("c1", "t9").dead_summarizer("c1").stops("c1", "t9").take())
        assert Incident.objects.count() == 2
        return list(CauseGroup.objects.order_by("id"))

    def test_soon_after_it_opens_the_group_again_without_a_second_alert(
        self, sender: Sender
    ) -> None:
        groups = self.closed_and_again(sender, 0)
        assert [(group.count, group.closed_at, group.alerted_at) for group in groups] == [
            (2, None, 1)
        ]

    def test_later_it_is_a_new_group_with_an_alert_of_its_own(self, sender: Sender) -> None:
        groups = self.closed_and_again(sender, SOON_MS + 60_000)
        assert [group.count for group in groups] == [1, 1]
        assert groups[1].alerted_at is not None and groups[1].alerted_at > 1


class TestWhatIsKept:
    def test_judged_then_stays_when_the_present_rules_see_it_otherwise(
        self, sender: Sender
    ) -> None:
        agent, told = connect_agent(), stopped()
        sender.send(agent, told.take())
        sender.send(agent, told.folds("c1").works("c1", 3).take())
        sender.writer.stop()
        row = Incident.objects.get()
        old = decode_view(row.judged)
        assert old is not None
        then = msgspec.structs.replace(old, sentence="As it was seen then.", core_version=1)
        row.judged = msgspec.json.encode(then).decode()
        row.view = row.judged
        row.save()
        found = [problem.what for problem in verify(repair=True).problems]
        assert any("sentence is 'As it was seen then.'" in what for what in found)
        detail = queries.incident_detail(row.pk)
        assert detail is not None and detail.judged is not None and detail.view is not None
        assert detail.judged.sentence == "As it was seen then."
        assert detail.judged.core_version == 1
        assert detail.view.sentence != "As it was seen then."
        assert verify().problems == []

    def test_a_rebuild_moves_a_row_to_where_the_present_rules_open_it(
        self, sender: Sender, admin: Any
    ) -> None:
        sender.send(connect_agent(), stopped().take())
        row = Incident.objects.get()
        note = writes.note_add(incident_id=row.pk, text="seen", by=admin)
        Incident.objects.update(opened_seq=row.opened_seq + 1)
        sender.writer.stop()
        assert not verify(repair=True).ok
        assert Incident.objects.get().opened_seq == row.opened_seq
        detail = queries.incident_detail(row.pk)
        assert detail is not None and [kept.id for kept in detail.notes] == [note.id]
        assert verify().problems == []

    def test_one_that_the_present_rules_do_not_see_stays_to_be_read(self, sender: Sender) -> None:
        sender.send(connect_agent(), stopped().take())
        sender.writer.stop()
        real = Incident.objects.get()
        ghost = Incident.objects.get()
        ghost.pk, ghost.opened_seq, ghost.started_seq = None, 900, 900
        ghost.save()
        assert not verify(repair=True).ok
        detail = queries.incident_detail(ghost.pk)
        assert detail is not None
        assert detail.view is None and detail.judged is not None
        assert detail.row.closed_at is not None
        assert queries.incident_of(real.chat_id).id == real.pk  # type: ignore[union-attr]
        assert verify().problems == []

    @pytest.mark.parametrize(
        "values", [{"root": "jump"}, {"closed_at": 5}, {"view": ""}, {"started_at": 1}]
    )
    def test_verify_says_where_a_row_is_another(
        self, sender: Sender, values: dict[str, Any]
    ) -> None:
        sender.send(connect_agent(), stopped().take())
        sender.writer.stop()
        assert verify().ok
        Incident.objects.update(**values)
        report = verify(repair=True)
        assert any("incident" in problem.what for problem in report.problems)
        assert verify().problems == []

    def test_verify_says_where_a_group_is_another(self, sender: Sender) -> None:
        sender.send(connect_agent(), stopped().take())
        sender.writer.stop()
        CauseGroup.objects.update(count=7, closed_at=3)
        found = [(p.where.rsplit(" ", 1)[0], p.what) for p in verify(repair=True).problems]
        assert [where for where, _ in found] == ["cause group"]
        assert "count is 7" in found[0][1] and "closed_at is 3" in found[0][1]
        assert verify().problems == []

    def test_a_rebuild_alone_changes_nothing(self, sender: Sender) -> None:
        sender.send(connect_agent(), stopped().take())
        sender.writer.stop()
        before = Incident.objects.values().get(), CauseGroup.objects.values().get()
        call(rebuild, Chat.objects.get().pk)
        assert (Incident.objects.values().get(), CauseGroup.objects.values().get()) == before


def test_events_around_an_incident_are_pinned(sender: Sender) -> None:
    agent, told = connect_agent(), Told().opens("c1")
    told.works("c1", 60, "t0").asks("c1").dead_summarizer("c1", 3).stops("c1")
    sender.send(agent, told.take())
    row = Incident.objects.get()
    assert queries.pinned_ranges(row.chat_id) == [(row.started_seq - 50, None)]
    sender.send(agent, told.folds("c1").works("c1", 3).take())
    row = Incident.objects.get()
    assert row.closed_seq is not None
    assert queries.pinned_ranges(row.chat_id) == [(row.started_seq - 50, row.closed_seq + 50)]


def test_the_figures_of_an_open_incident_are_those_of_now(sender: Sender) -> None:
    agent, told = connect_agent(), stopped()
    sender.send(agent, told.take())
    for step in range(4):
        told.events.extend(exchange(told.next, 150_000 + step, "c1"))
        sender.send(agent, told.take())
    detail = queries.incident_detail(Incident.objects.get().pk)
    assert detail is not None and detail.view is not None
    assert detail.view.requests == 4
    assert detail.judged == detail.view
    sender.writer.stop()
    assert verify().problems == []


def test_incidents_that_an_older_version_did_not_know_are_found_after_an_upgrade(
    sender: Sender,
) -> None:
    sender.send(connect_agent(), stopped().take())
    sender.writer.stop()
    Incident.objects.all().delete()
    CauseGroup.objects.all().delete()
    startup.settle()
    assert not rejudging.behind()
    Chat.objects.update(fold_version=FOLD_VERSION - 1)
    startup.settle()
    startup.settle()
    assert rejudging.behind()
    assert rejudging.rejudge() == 1
    assert [row.root for row in queries.incident_list().rows] == ["summarizer_empty"]
    startup.settle()
    assert not rejudging.behind()
