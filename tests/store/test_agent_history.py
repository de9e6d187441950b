"""Connections of an agent, what of it was refused, and agents that were only files."""

from __future__ import annotations

import pytest

from ctxhealth.store import queries, startup, writes
from ctxhealth.store.projects import default_project
from ctxhealth.store.writes.agents import Connected
from ctxhealth.wire.frames import Capabilities, Hello
from tests.live.world import Agent

pytestmark = pytest.mark.django_db


def connect(name: str = "robot", *, read_only: bool = False, version: str = "") -> Connected:
    caps = Capabilities(read_only=read_only)
    hello = Hello(protocols=[1], agent=name, epoch="e1", caps=caps, runtime_version=version)
    return writes.agent_connect(project=default_project().pk, hello=hello, skew_ms=40)


def leave(connected: Connected, reason: str) -> None:
    writes.agent_disconnect(agent=connected.stream.agent, conn_no=connected.conn_no, reason=reason)


def test_each_connection_is_kept_with_its_end_and_version() -> None:
    first = connect(version="1.0")
    leave(first, "timed out")
    second = connect(version="1.1")
    rows = queries.agent_connections(second.stream.agent)
    assert [(row.conn_no, row.runtime_version, row.reason) for row in rows] == [
        (2, "1.1", ""), (1, "1.0", "timed out"),
    ]  # fmt: skip
    assert rows[0].ended_at is None and rows[0].lasted_ms is None
    assert rows[1].lasted_ms is not None and rows[1].skew_ms == 40


def test_a_connection_that_another_one_replaces_ends_there() -> None:
    connect()
    agent = connect().stream.agent
    assert [row.reason for row in queries.agent_connections(agent)] == ["", "replaced"]


def test_a_late_goodbye_of_a_replaced_connection_ends_nothing() -> None:
    first = connect()
    agent = connect().stream.agent
    leave(first, "bye: done")
    assert queries.agent_connections(agent)[0].ended_at is None


def test_a_server_that_starts_ends_what_it_left_open() -> None:
    agent = connect().stream.agent
    startup.settle()
    assert queries.agent_connections(agent)[0].reason == "the server stopped"


def test_the_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxhealth.store.writes.connections.KEPT", 5)
    for _ in range(30):
        agent = connect().stream.agent
    assert [row.conn_no for row in queries.agent_connections(agent)] == [30, 29, 28, 27, 26]


def test_an_agent_that_only_posts_has_no_connection() -> None:
    hello = Hello(protocols=[1], agent="poster", epoch="e1", caps=Capabilities())
    made = writes.agent_connect(project=default_project().pk, hello=hello, fence=False)
    assert queries.agent_connections(made.stream.agent) == []


def test_a_file_that_was_read_to_its_end_is_no_agent_that_is_away() -> None:
    leave(connect("tailed", read_only=True), "bye: closed")
    leave(connect("watched", read_only=True), "timed out")
    leave(connect("robot"), "bye: closed")
    assert {row.name for row in queries.agents_list()} == {"watched", "robot"}
    files = queries.session_files()
    assert ([row.name for row in files.rows], files.total) == (["tailed"], 1)


def test_a_file_that_is_followed_again_is_an_agent_again() -> None:
    leave(connect("tailed", read_only=True), "bye: closed")
    connect("tailed", read_only=True)
    assert [row.name for row in queries.agents_list()] == ["tailed"]
    assert queries.session_files().rows == []


def test_session_files_come_in_pages_and_by_name() -> None:
    for number in range(7):
        leave(connect(f"file {number}", read_only=True), "bye: closed")
    second = queries.session_files(page=2, per_page=3)
    assert (len(second.rows), second.page, second.pages, second.total) == (3, 2, 3, 7)
    assert queries.session_files(page=99, per_page=3).page == 3
    assert [row.name for row in queries.session_files(text="E 4").rows] == ["file 4"]


def test_refused_events_are_found_again_newest_first() -> None:
    robot = Agent()
    robot.chat("c1", 50_000)
    for _ in range(2):
        robot.report({"type": "turn.started", "chat": "c1", "turn": 7})
    agent = robot.connected.stream.agent
    rows = queries.agent_rejects(agent)
    assert [row.type for row in rows] == ["turn.started"] * 2
    assert (rows[0].seq or 0) > (rows[1].seq or 0)
    row = queries.agent_get(agent)
    assert row is not None and row.rejects == 2
