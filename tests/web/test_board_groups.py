"""Chats with one cause stand together on the board, under one line that names it."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client

from ctxhealth.store import queries, writes
from ctxhealth.store.queries import BoardFilters
from tests.live.world import Agent, quota_gone
from tests.web.markup import read


def lines_of(page: str) -> list[str]:
    """The ids of the lines of the table's body, in order."""
    body = page[page.index('<tbody id="rows">') :]
    return re.findall(r'<tr id="((?:row|group)-\d+)"', body)


def test_chats_of_one_cause_stand_together_under_a_line_that_names_it(
    robot: Agent, viewer: Client
) -> None:
    first = quota_gone(robot, "c1")
    other = quota_gone(robot, "c2", model="another")
    second = quota_gone(robot, "c3")
    page = viewer.get("/").content.decode()
    (group,) = queries.board_page().groups
    lines = lines_of(page)
    assert lines.count(f"group-{group.id}") == 1
    at = lines.index(f"group-{group.id}")
    assert set(lines[at + 1 : at + 3]) == {f"row-{first}", f"row-{second}"}
    assert f"row-{other}" in lines
    text = " ".join(read(page).text.split())
    assert "2 chats, one cause:" in text
    assert "utility model glm-flash (zai) has no quota left" in text


def test_another_order_than_the_worst_first_keeps_chats_where_it_has_them(
    robot: Agent, viewer: Client
) -> None:
    quota_gone(robot, "c1")
    quota_gone(robot, "c2")
    assert not any(line.startswith("group-") for line in lines_of(
        viewer.get("/?sort=title").content.decode()))  # fmt: skip


def test_a_group_can_be_looked_at_alone_and_who_took_it_is_said(
    robot: Agent, viewer: Client, django_user_model: Any
) -> None:
    members = [quota_gone(robot, "c1"), quota_gone(robot, "c2")]
    calm = robot.chat("fine", 10_000)
    (group,) = queries.board_page().groups
    ada = writes.user_ensure(username="ada", role="operator")
    writes.group_own(group_id=group.id, owner=ada, by=ada)
    page = viewer.get(f"/?cause={group.id}").content.decode()
    assert {f"row-{pk}" for pk in members} <= set(lines_of(page))
    assert f"row-{calm}" not in page
    assert page.count("taken by ") == 3
    assert queries.board_page(BoardFilters(cause=group.id + 1)).rows == []
