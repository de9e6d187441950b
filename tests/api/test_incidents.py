"""Reading incidents over the HTTP API."""

from __future__ import annotations

from typing import Any

from django.test import Client

from ctxhealth.store import writes
from tests.live.world import Agent


def stopped(robot: Agent, name: str, reason: str = "limit") -> int:
    pk = robot.chat(name)
    robot.report(
        {"type": "turn.started", "chat": name, "turn": "t", "kind": "user"},
        {"type": "agent.stopped", "chat": name, "reason": reason, "count": 5, "limit": 5},
    )
    return pk


def listed(reader: Client, **filters: Any) -> dict[str, Any]:
    answer: dict[str, Any] = reader.get("/api/v1/incidents", filters).json()
    return answer


def test_the_list_has_the_open_ones_with_root_cause_and_group(robot: Agent, reader: Client) -> None:
    first, second = stopped(robot, "c1"), stopped(robot, "c2")
    body = listed(reader)
    assert {row["chat"] for row in body["incidents"]} == {first, second}
    row = body["incidents"][0]
    assert (row["root"], row["state"], row["closed_at"]) == ("stopped", "stopped", None)
    assert row["group_chats"] == 2
    assert row["cause"]["agent"] == "robot"
    assert body["counts"] == {"open": 2, "closed": 0, "all": 2, "reviews": 0}


def test_filters_and_pages_narrow_it(robot: Agent, reader: Client) -> None:
    for number in range(3):
        stopped(robot, f"c{number}")
    other = stopped(Agent("other"), "d1", "something rare")
    assert [row["chat"] for row in listed(reader, agent="other")["incidents"]] == [other]
    assert [row["chat"] for row in listed(reader, q="rare some")["incidents"]] == [other]
    assert listed(reader, root="jump")["total"] == 0
    assert listed(reader, state="closed")["total"] == 0
    pages = [listed(reader, page=page, limit=2) for page in (1, 2, 9)]
    assert [len(page["incidents"]) for page in pages] == [2, 2, 2]
    assert [page["page"] for page in pages] == [1, 2, 2]
    wrong = reader.get("/api/v1/incidents", {"state": "broken"})
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, "state")


def test_one_in_full_has_chain_notes_and_verdict(robot: Agent, reader: Client) -> None:
    stopped(robot, "c1")
    pk = listed(reader)["incidents"][0]["id"]
    mia = writes.user_ensure(username="mia", role="operator")
    writes.note_add(incident_id=pk, text="**seen**", by=mia)
    writes.verdict_set(incident_id=pk, verdict="root_cause", text="a limit", by=mia)
    body = reader.get(f"/api/v1/incidents/{pk}").json()
    assert [(link["code"], link["kind"], link["root"]) for link in body["view"]["chain"]] == [
        ("stopped", "stop", True)
    ]
    assert body["judged"] == body["view"]
    assert [(note["text"], note["by"]) for note in body["notes"]] == [("**seen**", "mia")]
    assert (body["verdict"]["verdict"], body["verdict"]["text"]) == ("root_cause", "a limit")
    assert body["group"]["chats"] == [body["incident"]["chat"]]
    assert body["to_seq"] is None


def test_one_that_is_not_there_is_said_so(reader: Client) -> None:
    answer = reader.get("/api/v1/incidents/7")
    assert answer.status_code == 404
    assert answer.json()["error"]["detail"] == "There is no incident 7."


def test_nobody_reads_them_without_a_token(robot: Agent) -> None:
    assert Client().get("/api/v1/incidents").status_code == 401
