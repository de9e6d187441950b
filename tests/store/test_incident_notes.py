"""What people add to incidents, who may, and what the audit trail says of it."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.store import queries, writes
from ctxhealth.store.models import Chat, Event, Incident
from ctxhealth.store.writer import Writer
from ctxhealth.store.writes import Refused
from tests.store.conftest import Sender, connect_agent
from tests.store.troubles import Told

pytestmark = pytest.mark.db


@pytest.fixture
def mia(writer: Writer) -> Any:
    return writes.user_ensure(username="mia", role="operator")


@pytest.fixture
def tom(writer: Writer) -> Any:
    return writes.user_ensure(username="tom", role="admin")


@pytest.fixture
def eva(writer: Writer) -> Any:
    return writes.user_ensure(username="eva", role="viewer")


@pytest.fixture
def incident(sender: Sender) -> int:
    told = Told().opens("c1").asks("c1").dead_summarizer("c1", 3).stops("c1")
    sender.send(connect_agent(), told.take())
    return Incident.objects.get().pk


def detail(pk: int) -> queries.IncidentDetail:
    found = queries.incident_detail(pk)
    assert found is not None
    return found


def trail() -> list[tuple[str, str, str]]:
    rows = queries.audit_page().rows
    return [(row.action, row.by, row.result) for row in reversed(rows) if "user" not in row.action]


def refused(run: Any, **wanted: Any) -> str:
    with pytest.raises(Refused) as caught:
        run(**wanted)
    return caught.value.reason


class TestNotes:
    def test_a_note_is_added_changed_and_deleted_and_the_trail_knows(
        self, incident: int, mia: Any
    ) -> None:
        note = writes.note_add(incident_id=incident, text="*seen*", by=mia)
        assert (note.text, note.by, note.edited_at) == ("*seen*", "mia", None)
        writes.note_edit(note_id=note.id, text="*fixed*", by=mia)
        (kept,) = detail(incident).notes
        assert kept.text == "*fixed*" and kept.edited_at is not None and kept.at == note.at
        writes.note_delete(note_id=note.id, by=mia)
        assert detail(incident).notes == []
        assert [(action, by) for action, by, _ in trail()] == [
            ("incident.note_add", "mia"),
            ("incident.note_edit", "mia"),
            ("incident.note_delete", "mia"),
        ]

    def test_somebody_else_s_note_is_not_touched_by_an_admin_either(
        self, incident: int, mia: Any, tom: Any
    ) -> None:
        note = writes.note_add(incident_id=incident, text="mine", by=mia)
        assert refused(writes.note_edit, note_id=note.id, text="no", by=tom) == "not_yours"
        assert refused(writes.note_delete, note_id=note.id, by=tom) == "not_yours"
        assert [kept.text for kept in detail(incident).notes] == ["mine"]
        assert trail()[-1] == ("incident.note_delete", "tom", "refused: not_yours")

    @pytest.mark.parametrize("text", ["", "  \n", "x" * 20_001, "a\0b"])
    def test_a_text_that_is_none_or_too_long_is_refused_by_name(
        self, incident: int, mia: Any, text: str
    ) -> None:
        with pytest.raises(Refused) as caught:
            writes.note_add(incident_id=incident, text=text, by=mia)
        assert (caught.value.reason, caught.value.field) == ("bad", "text")

    def test_viewers_write_nothing_and_nobody_does_on_a_read_only_server(
        self, incident: int, mia: Any, eva: Any, settings: Any
    ) -> None:
        assert refused(writes.note_add, incident_id=incident, text="x", by=eva) == "no_right"
        assert refused(writes.note_add, incident_id=999, text="x", by=mia) == "no_incident"
        settings.CTXHEALTH_READ_ONLY = True
        assert (
            refused(writes.note_add, incident_id=incident, text="x", by=mia) == "server_read_only"
        )

    def test_a_secret_in_a_note_is_not_kept(self, incident: int, mia: Any) -> None:
        secret = "sk-ant-api03-" + "A1b2C3d4" * 6
        writes.note_add(incident_id=incident, text=f"key {secret}", by=mia)
        assert secret not in detail(incident).notes[0].text


class TestVerdicts:
    def test_a_verdict_is_set_with_its_text_and_taken_back(self, incident: int, mia: Any) -> None:
        writes.verdict_set(incident_id=incident, verdict="root_cause", text="no quota", by=mia)
        found = detail(incident)
        assert (found.verdict, found.verdict_text, found.verdict_by) == (
            "root_cause", "no quota", "mia",
        )  # fmt: skip
        assert found.verdict_at is not None and found.row.verdict == "root_cause"
        writes.verdict_set(incident_id=incident, verdict="", by=mia)
        found = detail(incident)
        assert (found.verdict, found.verdict_by, found.verdict_at) == ("", "", None)

    def test_a_false_alarm_needs_no_text_and_a_root_cause_does(
        self, incident: int, mia: Any
    ) -> None:
        writes.verdict_set(incident_id=incident, verdict="false_alarm", by=mia)
        assert detail(incident).verdict == "false_alarm"
        for wrong in ({"verdict": "root_cause"}, {"verdict": "guilty", "text": "x"}):
            assert refused(writes.verdict_set, incident_id=incident, by=mia, **wrong) == "bad"


class TestOwners:
    def test_one_takes_it_and_hands_it_over(self, incident: int, mia: Any, tom: Any) -> None:
        writes.incident_own(incident_id=incident, owner=mia, by=mia)
        assert queries.incident_list().rows[0].owner == "mia"
        writes.incident_own(incident_id=incident, owner=tom, by=mia)
        assert queries.incident_list().rows[0].owner == "tom"
        writes.incident_own(incident_id=incident, owner=None, by=tom)
        assert queries.incident_list().rows[0].owner == ""
        assert [(action, result) for action, _, result in trail()] == [
            ("incident.owner", "mia"),
            ("incident.owner", "tom"),
            ("incident.owner", "nobody"),
        ]

    def test_who_takes_a_cause_has_all_its_incidents(self, incident: int, tom: Any) -> None:
        (group,) = queries.cause_groups_open()
        writes.group_own(group_id=group.id, owner=tom, by=tom)
        assert queries.incident_list().rows[0].owner == "tom"
        assert queries.cause_groups_open()[0].owner == "tom"

    def test_a_viewer_is_no_owner(self, incident: int, mia: Any, eva: Any) -> None:
        assert refused(writes.incident_own, incident_id=incident, owner=eva, by=mia) == "no_person"
        assert refused(writes.group_own, group_id=99, owner=mia, by=mia) == "no_group"


class TestReviews:
    def calm(self, sender: Sender) -> int:
        told = Told().opens("calm").works("calm", 10)
        sender.send(connect_agent("calm"), told.take())
        return Chat.objects.get(external_id="calm").pk

    def test_any_range_of_a_chat_without_trouble_can_be_reviewed(
        self, sender: Sender, mia: Any
    ) -> None:
        chat = self.calm(sender)
        pk = writes.review_create(chat_id=chat, from_seq=5, to_seq=9, title="Look here", by=mia)
        found = detail(pk)
        assert (found.row.kind, found.from_seq, found.to_seq) == ("review", 5, 9)
        assert (found.row.sentence, found.created_by, found.view) == ("Look here", "mia", None)
        assert queries.pinned_ranges(chat) == [(1, 59)]
        assert [row.id for row in queries.reviews().rows] == [pk]
        page = queries.incident_list()
        assert (page.total, page.counts["reviews"], page.counts["all"]) == (0, 1, 1)
        assert queries.incident_of(chat) is None

    def test_a_range_of_time_is_the_events_within_it(self, sender: Sender, mia: Any) -> None:
        chat = self.calm(sender)
        Event.objects.filter(chat_id=chat).update(at=1_000)
        Event.objects.filter(chat_id=chat, chat_seq__gte=4).update(at=2_000)
        Event.objects.filter(chat_id=chat, chat_seq__gte=7).update(at=3_000)
        pk = writes.review_create(chat_id=chat, from_at=1_500, to_at=2_500, by=mia)
        assert (detail(pk).from_seq, detail(pk).to_seq) == (4, 6)
        whole = writes.review_create(chat_id=chat, by=mia)
        head = Chat.objects.get(pk=chat).chat_seq
        assert (detail(whole).from_seq, detail(whole).to_seq) == (1, head)

    def test_a_range_without_an_event_is_refused_by_name(self, sender: Sender, mia: Any) -> None:
        chat = self.calm(sender)
        for wrong in ({"from_seq": 9, "to_seq": 5}, {"from_seq": 10_000}, {"title": "x" * 201}):
            assert refused(writes.review_create, chat_id=chat, by=mia, **wrong) == "bad"
        assert refused(writes.review_create, chat_id=999, by=mia) == "no_chat"
        assert Incident.objects.filter(kind="review").count() == 0


def test_the_list_is_searched_filtered_and_paged(sender: Sender) -> None:
    for name in ("a1", "a2"):
        told = Told()
        for chat in ("alpha", "beta", "gamma"):
            told.opens(chat).asks(chat).dead_summarizer(chat)
        sender.send(connect_agent(name), told.take())
    assert queries.incident_list(agent="a1").total == 3
    assert queries.incident_list(text="alpha").total == 2
    assert queries.incident_list(text="GLM-flash freed").total == 6
    assert queries.incident_list(root="summarizer_empty").total == 6
    assert queries.incident_list(root="jump").counts == dict.fromkeys(
        ("open", "closed", "all", "reviews"), 0
    )
    pages = [queries.incident_list(page=page, per_page=4) for page in (1, 2, 3)]
    assert [(page.page, page.pages, len(page.rows)) for page in pages] == [
        (1, 2, 4), (2, 2, 2), (2, 2, 2),
    ]  # fmt: skip
    ids = {row.id for page in pages[:2] for row in page.rows}
    assert len(ids) == 6
    assert queries.incidents_open_count() == 6
    assert queries.incident_choices() == {"agents": ["a1", "a2"], "roots": ["summarizer_empty"]}


def test_commands_of_the_incident_s_time_stand_beside_it(
    sender: Sender, incident: int, mia: Any
) -> None:
    chat = Chat.objects.get().pk
    pressed = writes.command_request(
        chat_id=chat, kind="compact_fallback", reason="full", idempotency_key="k", by=mia
    )
    assert [row.id for row in queries.incident_commands(incident)] == [pressed.id]
    view = detail(incident).view
    assert view is not None
    assert [(given.command, given.by) for given in view.commands] == [(pressed.id, "mia")]
    assert queries.incident_list().rows[0].acted_by == "mia"
