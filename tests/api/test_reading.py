"""Reading chats over the HTTP API."""

from __future__ import annotations

from django.test import Client

from tests.live.world import Agent


def test_a_list_tells_of_each_chat_what_its_row_shows(robot: Agent, reader: Client) -> None:
    pk = robot.chat("c1", 60_000)
    body = reader.get("/api/v1/chats").json()
    assert body["next"] is None
    assert body["total"] == 1
    [chat] = body["chats"]
    assert (chat["id"], chat["chat"], chat["agent"]) == (pk, "c1", "robot")
    assert chat["load"]["value"] == 60_000
    assert chat["load"]["source"] == "provider"
    assert chat["window"]["value"] == 200_000
    assert chat["state"] == "healthy"
    assert chat["version"] >= 1
    assert body["counts_by_state"] == {"healthy": 1}


def test_pages_follow_each_other_by_cursor_and_hold_every_chat_once(
    robot: Agent, reader: Client
) -> None:
    made = {robot.chat(f"c{n}", 10_000 + n) for n in range(7)}
    seen: list[int] = []
    cursor = ""
    while True:
        body = reader.get("/api/v1/chats", {"limit": 3, "cursor": cursor}).json()
        seen += [chat["id"] for chat in body["chats"]]
        cursor = body["next"]
        if cursor is None:
            break
        assert len(body["chats"]) == 3
    assert sorted(seen) == sorted(made)


def test_filters_narrow_the_list(robot: Agent, reader: Client) -> None:
    robot.chat("alpha", 10_000, model="small", title="The alpha")
    beta = robot.chat("beta", 20_000, model="large")
    other = Agent("other").chat("gamma", 30_000)

    def ids(**filters: str) -> set[int]:
        return {chat["id"] for chat in reader.get("/api/v1/chats", filters).json()["chats"]}

    assert ids(model="large") == {beta}
    assert ids(agent="other") == {other}
    assert ids(q="ALPHA the") == ids(q="alpha")
    assert len(ids(q="alpha")) == 1
    assert ids(state="stopped,over") == set()
    assert len(ids(state="healthy")) == 3


def test_a_chat_in_full_has_everything_its_page_shows(robot: Agent, reader: Client) -> None:
    pk = robot.chat("c1", 60_000)
    robot.report(
        {"type": "latch.set", "chat": "c1", "latch": "l1", "kind": "structural", "scope": "turn"}
    )
    body = reader.get(f"/api/v1/chats/{pk}").json()
    for field in ("structure", "attempts", "commands", "children", "findings", "heavy"):
        assert field in body, field
    [latch] = body["latches"]
    assert (latch["latch"], latch["kind"]) == ("l1", "structural")
    assert "why" in latch


def test_the_log_is_paged_and_filtered_by_type(robot: Agent, reader: Client) -> None:
    pk = robot.chat("c1", 60_000)
    whole = reader.get(f"/api/v1/chats/{pk}/events").json()
    seqs = [event["chat_seq"] for event in whole["events"]]
    assert seqs == list(range(1, len(seqs) + 1))
    assert whole["next"] is None
    page = reader.get(f"/api/v1/chats/{pk}/events", {"after": 2, "limit": 2}).json()
    assert [event["chat_seq"] for event in page["events"]] == [3, 4]
    assert page["next"] == 4
    some = reader.get(f"/api/v1/chats/{pk}/events", {"type": "turn.started,turn.ended"}).json()
    assert [event["type"] for event in some["events"]] == ["turn.started", "turn.ended"]
    assert some["events"][0]["body"]["turn"]


def test_readings_are_the_series_of_the_load(robot: Agent, reader: Client) -> None:
    pk = robot.chat("c1", 60_000)
    robot.turn("c1", 70_000)
    readings = reader.get(f"/api/v1/chats/{pk}/readings").json()["readings"]
    loads = [point["load"] for point in readings if point["source"] == "provider"]
    assert loads[0] == 60_000
    assert loads[-1] == 70_000


def test_any_moment_can_be_asked_for(robot: Agent, reader: Client) -> None:
    pk = robot.chat("c1", 60_000)
    head = reader.get(f"/api/v1/chats/{pk}").json()["chat_seq"]
    robot.turn("c1", 90_000)
    then = reader.get(f"/api/v1/chats/{pk}/at/{head}").json()
    assert then["detail"]["summary"]["load"]["value"] == 60_000
    assert then["detail"]["chat_seq"] == head
    assert reader.get(f"/api/v1/chats/{pk}/at/99999").status_code == 404


def test_what_does_not_exist_is_a_404_with_the_field(robot: Agent, reader: Client) -> None:
    for path in ("chats/77", "chats/77/events", "chats/77/readings", "chats/77/at/1"):
        response = reader.get(f"/api/v1/{path}")
        assert response.status_code == 404
        assert response.json()["error"]["field"] == "chat_id"


def test_a_value_that_is_not_acceptable_is_named(robot: Agent, reader: Client) -> None:
    pk = robot.chat("c1")
    for path, field in (
        ("/api/v1/chats?limit=0", "limit"),
        ("/api/v1/chats?limit=x", "limit"),
        ("/api/v1/chats?state=fine", "state"),
        ("/api/v1/chats?cursor=nonsense", "cursor"),
        ("/api/v1/chats/x", "chat_id"),
        ("/api/v1/chats/99999999999999999999", "chat_id"),
        (f"/api/v1/chats/{pk}/events?after=-1", "after"),
        (f"/api/v1/chats/{pk}/readings?points=1", "points"),
    ):
        response = reader.get(path)
        assert response.status_code == 422, path
        assert response.json()["error"]["field"] == field, path
        assert response.json()["error"]["detail"]
