"""What people add to an incident: notes, the verdict, who takes care of it; and who may."""

from __future__ import annotations

import pytest
from django.test import Client

from ctxhealth.store import queries, writes
from ctxhealth.store.queries.incidents import IncidentDetail
from tests.live.world import Agent
from tests.web.markup import read
from tests.web.troubled import incident_of


def detail(number: int) -> IncidentDetail:
    found = queries.incident_detail(number)
    assert found is not None
    return found


def shown(client: Client, number: int, query: str = "") -> str:
    return client.get(f"/incidents/{number}/{query}").content.decode()


def test_a_note_in_markdown_is_added_edited_and_deleted_by_its_writer(
    robot: Agent, operator: Client
) -> None:
    number = incident_of(robot)
    answer = operator.post(f"/incidents/{number}/notes/", {"text": "The *quota* was gone."})
    assert answer.headers["Location"] == f"/incidents/{number}/#notes"
    assert "The <em>quota</em> was gone." in shown(operator, number)
    (note,) = detail(number).notes
    assert f'action="/incidents/{number}/notes/{note.id}/"' in shown(
        operator, number, f"?edit={note.id}"
    )
    operator.post(f"/incidents/{number}/notes/{note.id}/", {"text": "It came back."})
    assert "It came back." in shown(operator, number)
    assert ", edited" in shown(operator, number)
    operator.post(f"/incidents/{number}/notes/{note.id}/", {"does": "delete"})
    assert detail(number).notes == []
    assert "No note yet." in shown(operator, number)


def test_somebody_elses_note_is_not_mine_to_change(
    robot: Agent, operator: Client, admin: Client
) -> None:
    number = incident_of(robot)
    operator.post(f"/incidents/{number}/notes/", {"text": "mine"})
    (note,) = detail(number).notes
    assert f"?edit={note.id}" not in shown(admin, number)
    answer = admin.post(f"/incidents/{number}/notes/{note.id}/", {"text": "not mine"}, follow=True)
    assert "is a-operator" in answer.content.decode().replace("&#x27;", "'")
    assert [each.text for each in detail(number).notes] == ["mine"]


def test_an_empty_note_and_one_for_nothing_are_refused_in_words(
    robot: Agent, operator: Client
) -> None:
    number = incident_of(robot)
    answer = operator.post(f"/incidents/{number}/notes/", {"text": "  "}, follow=True)
    assert "A text is needed." in answer.content.decode()
    assert operator.post("/incidents/99999/notes/", {"text": "x"}).status_code == 302
    assert operator.get(f"/incidents/{number}/notes/").status_code == 405


def test_a_verdict_is_given_changed_and_taken_back(robot: Agent, operator: Client) -> None:
    number = incident_of(robot)
    path = f"/incidents/{number}/verdict/"
    operator.post(path, {"verdict": "root_cause", "text": "The nightly batch ate the quota."})
    text = read(shown(operator, number)).text
    assert "Root cause known" in text and "The nightly batch ate the quota." in text
    operator.post(path, {"verdict": "false_alarm"})
    assert detail(number).verdict == "false_alarm"
    operator.post(path, {"verdict": "", "text": "left over"})
    assert (detail(number).verdict, detail(number).verdict_text) == ("", "")
    answer = operator.post(path, {"verdict": "guilty"}, follow=True)
    assert "is not a verdict" in answer.content.decode()


def test_an_incident_is_taken_handed_over_and_let_go(
    robot: Agent, operator: Client, admin: Client, viewer: Client
) -> None:
    number = incident_of(robot)
    path = f"/incidents/{number}/owner/"
    operator.post(path, {"to": "a-operator"})
    assert "Let go of it" in shown(operator, number)
    assert "a-operator" in read(operator.get("/incidents/").content.decode()).text
    operator.post(path, {"to": "a-admin"})
    assert detail(number).row.owner == "a-admin"
    for name, said in (("nobody-here", "nobody called"), ("a-viewer", "must be an operator")):
        answer = operator.post(path, {"to": name}, follow=True)
        assert said in answer.content.decode()
    operator.post(path, {"to": ""})
    assert detail(number).row.owner == ""


def test_a_whole_cause_can_be_taken_at_once(robot: Agent, operator: Client) -> None:
    numbers = [incident_of(robot, "c1"), incident_of(robot, "c2")]
    assert "Take all 2 of this cause" in shown(operator, numbers[0])
    operator.post(f"/incidents/{numbers[0]}/owner/", {"group": "1", "to": "a-operator"})
    assert [detail(number).row.owner for number in numbers] == ["a-operator"] * 2


@pytest.mark.parametrize("path", ["notes/", "verdict/", "owner/"])
def test_a_viewer_reads_and_writes_nothing(robot: Agent, viewer: Client, path: str) -> None:
    number = incident_of(robot)
    html = shown(viewer, number)
    assert "<textarea" not in html and 'name="to"' not in html
    answer = viewer.post(
        f"/incidents/{number}/{path}",
        {"text": "x", "verdict": "false_alarm", "to": "a-viewer"},
        follow=True,
    )
    assert "Only operators and admins" in answer.content.decode()
    assert detail(number).notes == [] and detail(number).verdict == ""
    assert detail(number).row.owner == ""


def test_what_was_pressed_stands_with_its_result_and_its_reason(
    robot: Agent, operator: Client
) -> None:
    number = incident_of(robot)
    by = writes.user_ensure(username="mia", role="operator")
    writes.command_request(
        chat_id=detail(number).row.chat, kind="compact_fallback", idempotency_key="k", by=by,
        reason="stalled at 140,261",
    )  # fmt: skip
    html = shown(operator, number)
    text = " ".join(read(html).text.split())
    assert '<span class="by">mia</span>' in html
    assert "Force fallback Queued" in text
    assert "Reason: stalled at 140,261" in text
