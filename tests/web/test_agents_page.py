"""The Agents page: connections, what got lost, session files apart, summarizers of the fleet."""

from __future__ import annotations

from django.test import Client

from ctxhealth.store import writes
from tests.live.world import Agent
from tests.store.test_agent_history import connect, leave
from tests.store.test_summarizers import BAD, compacted
from tests.web.markup import read


def text_of(client: Client, path: str = "/agents/") -> str:
    return " ".join(read(client.get(path).content.decode()).text.split())


def test_summarizers_that_fail_are_told_with_class_cost_and_who_waits(
    robot: Agent, viewer: Client
) -> None:
    robot.chat("c1", 195_000)
    compacted(robot, "c1", "a1", BAD, 150_000, ms=2_300)
    text = text_of(viewer)
    for said in ("small-2", "acme", "failing", "quota 1", "100,000 tokens", "2.3 s",
                 "over the monthly limit", "Chat c1"):  # fmt: skip
        assert said in text, said
    region = viewer.get("/agents/summarizers/", headers={"HX-Request": "true"}).content.decode()
    assert "small-2" in region and "<html" not in region
    assert "small-2" in text_of(viewer, "/agents/summarizers/")


def test_a_model_that_was_never_called_is_not_said_to_answer(robot: Agent, viewer: Client) -> None:
    robot.chat("c1", 150_000)
    compacted(robot, "c1", "a1", {"model": "small-9", "calls": 0}, 150_000)
    text = text_of(viewer)
    assert "not called" in text and "answers" not in text


def test_without_summaries_the_page_says_so(robot: Agent, viewer: Client) -> None:
    assert "No compaction asked a utility model" in text_of(viewer)


def test_session_files_stand_apart_and_not_as_offline(db: None, viewer: Client) -> None:
    leave(connect("tailed", read_only=True), "bye: closed")
    writes.import_stream(product="codex", session="s1")
    agents, _, files = text_of(viewer).partition("nobody is waited for.")
    assert "tailed" not in agents and "Offline" not in agents
    assert "tailed" in files and "Read to the end" in files
    assert "codex (imported)" in files and "Imported" in files


def test_many_session_files_come_in_pages(db: None, viewer: Client) -> None:
    for number in range(52):
        leave(connect(f"file {number}", read_only=True), "bye: closed")
    assert "page 1 of 2" in text_of(viewer)
    second = text_of(viewer, "/agents/?files=2")
    assert "page 2 of 2" in second and "file 1Read" in second


def test_the_filter_narrows_agents_and_files_and_the_live_table(
    robot: Agent, viewer: Client
) -> None:
    leave(connect("other", read_only=True), "bye: closed")
    html = viewer.get("/agents/?q=rob").content.decode()
    text = read(html).text
    assert "robot" in text and "No session file is called so." in text
    assert "q=rob&amp;view=agents" in html or "view=agents&amp;q=rob" in html


def test_one_agent_shows_its_versions_connections_and_refused_events(
    robot: Agent, viewer: Client
) -> None:
    robot.chat("c1", 60_000)
    robot.report({"type": "turn.started", "chat": "c1", "turn": 7})
    leave(robot.connected, "timed out")
    connect("robot", version="9.9")
    text = text_of(viewer, f"/agents/{robot.connected.stream.agent}/")
    for said in ("test", "9.9", "timed out", "open", "turn.started", "epoch-robot"):
        assert said in text, said


def test_an_unknown_agent_is_not_found(viewer: Client) -> None:
    assert viewer.get("/agents/999/").status_code == 404
