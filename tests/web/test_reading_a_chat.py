"""A chat's page over the real store: events, series, hostile text through the whole line."""

from __future__ import annotations

import re

from django.test import Client

from tests.live.world import Agent
from tests.web.markup import read
from tests.web.test_hostile_text import CORPUS

HTMX = {"HX-Request": "true"}


def test_the_page_of_a_chat_shows_its_load_and_its_events(robot: Agent, viewer: Client) -> None:
    pk = robot.chat("c1", 60_000)
    text = read(viewer.get(f"/chats/{pk}/").content.decode()).text
    for said in ("Chat c1", "60,000", "model.replied", "chat.opened"):
        assert said in text, said


def test_hostile_words_of_an_agent_reach_no_page_as_markup(robot: Agent, operator: Client) -> None:
    said = "".join(CORPUS)[:1_500]
    pk = robot.chat("c1", 60_000, title=said[:200], model=said[:150])
    robot.report(
        {"type": "message.added", "chat": "c1", "id": "m1", "role": "tool", "kind": "tool_result",
         "tokens": 900, "name": said[:150], "excerpt": said[:390]},
        {"type": "latch.set", "chat": "c1", "latch": said[:150], "scope": "turn", "reason": said},
        {"type": "compaction.finished", "chat": "c1", "attempt": said[:150], "reported": said[:150],
         "reason": said, "before": 60_000, "after": 60_000, "backup": said,
         "summarizer": {"model": said[:150], "calls": 2, "error": "other", "detail": said}},
        {"type": "model.failed", "chat": "c1", "request": "r", "error": "other", "detail": said},
        {"type": "agent.stopped", "chat": "c1", "reason": said},
        {"type": "note", "chat": "c1", "text": said},
        {"type": said[:150], "chat": "c1", "evil": said},
    )  # fmt: skip
    pages = ("", "events/", "timeline/", "act/clear_latch/", "act/compact_fallback/")
    for path in ("/", *(f"/chats/{pk}/{page}" for page in pages)):
        markup = read(operator.get(path).content.decode())
        assert "alert(1)" in markup.text, path
        for element in markup.elements:
            assert element.tag not in {"img", "iframe", "style"}, path
            assert not [name for name in element.attributes if name.startswith("on")], path
            if element.tag == "script":
                assert (element.attributes["src"] or "").startswith("/static/"), path


def test_events_are_paged_filtered_and_shown_raw_on_demand(robot: Agent, viewer: Client) -> None:
    pk = robot.chat("c1", 60_000)
    for _ in range(40):
        robot.turn("c1", 61_000)
    page = viewer.get(f"/chats/{pk}/events/").content.decode()
    rows = [e for e in read(page).elements if "ev" in (e.attributes.get("class") or "").split()]
    assert len(rows) == 100
    older = viewer.get(f"/chats/{pk}/events/?before=66", headers=HTMX).content.decode()
    assert 'id="e65"' in older
    assert 'id="e66"' not in older
    only = viewer.get(f"/chats/{pk}/events/?type=chat.opened").content.decode()
    assert only.count('class="ev ') == 1
    assert "model.replied</code>" not in only
    newer = viewer.get(f"/chats/{pk}/events/?after=160", headers=HTMX).content.decode()
    assert 'id="e161"' in newer
    assert 'id="e160"' not in newer
    raw = viewer.get(f"/chats/{pk}/events/2/", headers=HTMX).content.decode()
    assert '"title": "Chat c1"' in read(raw).text


def test_what_a_compaction_left_is_shown_as_the_next_request_counted_it(
    robot: Agent, viewer: Client
) -> None:
    pk = robot.chat("c1", 60_000)
    done = {"attempt": "a1", "reported": "boundary", "before": 60_000, "summarizer": {"calls": 1}}
    robot.report({"type": "compaction.finished", "chat": "c1", **done})
    robot.turn("c1", 20_000)
    text = read(viewer.get(f"/chats/{pk}/").content.decode()).text
    assert "What the last compaction did" in text
    assert "not assigned 60,000 → 20,000" in " ".join(text.split())


def test_what_a_compaction_left_is_shown_as_the_agents_own_snapshot_has_it(
    robot: Agent, viewer: Client
) -> None:
    pk = robot.chat("c1", 60_000)
    sizes = {"type": "history.snapshot", "chat": "c1", "system": 1_000}
    old = [{"id": f"t{number}", "tokens": 19_000} for number in range(3)]
    robot.report(
        {**sizes, "revision": "r1", "topics": old, "current": {"tokens": 2_000}},
        {"type": "compaction.finished", "chat": "c1", "attempt": "a1", "reported": "done",
         "before": 60_000, "after": 25_000, "added": [{"id": "s1", "tokens": 22_000}]},
        {**sizes, "revision": "r2", "topics": old[:1], "bulks": [{"id": "b1", "tokens": 3_000}],
         "current": {"tokens": 2_000}},
    )  # fmt: skip
    robot.turn("c1", 25_000)
    text = " ".join(read(viewer.get(f"/chats/{pk}/").content.decode()).text.split())
    assert "topics 57,000 → 19,000" in text
    assert "bulks 0 → 3,000" in text


def test_a_link_to_an_event_opens_its_neighbourhood(robot: Agent, viewer: Client) -> None:
    pk = robot.chat("c1", 60_000)
    for _ in range(100):
        robot.turn("c1", 61_000)
    page = viewer.get(f"/chats/{pk}/events/?at=120").content.decode()
    for seq in (72, 120, 168):
        assert f'id="e{seq}"' in page
    assert 'id="e171"' not in page


def test_gaps_and_rejected_events_stand_in_their_place(robot: Agent, viewer: Client) -> None:
    pk = robot.chat("c1", 60_000)
    robot.report({"type": "gap", "chat": "c1", "count": 12, "reason": "outbox full"})
    robot.report({"type": "turn.ended", "chat": "c1", "turn": "t1", "outcome": "perhaps"})
    markup = read(viewer.get(f"/chats/{pk}/events/").content.decode())
    assert "12 events dropped: outbox full" in markup.text
    assert "rejected" in markup.text
    kinds = {word for e in markup.elements for word in (e.attributes.get("class") or "").split()}
    assert {"gap", "tombstone"} <= kinds


def test_the_series_and_its_table_hold_the_same(robot: Agent, viewer: Client) -> None:
    pk = robot.chat("c1", 60_000)
    robot.turn("c1", 70_000)
    robot.report({"type": "reply.empty", "chat": "c1", "n": 1},
                 {"type": "compaction.finished", "chat": "c1", "attempt": "a", "reported": "ok",
                  "before": 70_000, "after": 30_000})  # fmt: skip
    series = viewer.get(f"/chats/{pk}/series.json").json()
    assert {60_000, 70_000} <= set(series["load"])
    assert len(series["at"]) == len(series["load"]) == len(series["measured"])
    assert len(series["lanes"]["turns"]) == 2
    assert len(series["lanes"]["compactions"]) == 1
    assert len(series["lanes"]["replies"]) == 1
    table = read(viewer.get(f"/chats/{pk}/timeline/").content.decode()).text
    for said in ("70,000", "empty reply", "70,000 → 30,000"):
        assert said in table, said


def test_the_next_hundred_come_as_rows_alone(robot: Agent, viewer: Client) -> None:
    for number in range(103):
        robot.chat(f"c{number}")
    page = viewer.get("/").content.decode()
    markup = read(page)
    more = next(e for e in markup.elements if e.attributes.get("id") == "more")
    rest = viewer.get(more.attributes["hx-get"] or "", headers=HTMX).content.decode()
    ids = {e.attributes["id"] for e in markup.elements
           if (e.attributes.get("id") or "").startswith("row-")}  # fmt: skip
    ids_of_rest = {e.attributes["id"] for e in read(rest).elements if "id" in e.attributes}
    assert len(ids) == 100
    assert len(ids_of_rest) == 3
    assert not ids & ids_of_rest
    assert "<html" not in rest


def test_a_filter_that_fits_nothing_says_so(robot: Agent, viewer: Client) -> None:
    robot.chat("c1", 60_000)
    assert "No chat fits" in viewer.get("/?q=nothing-like-it").content.decode()


def test_an_attempt_opens_to_what_it_moved_and_to_its_own_events(
    robot: Agent, viewer: Client
) -> None:
    pk = robot.chat("c1", 60_000)
    sizes = {"type": "history.snapshot", "chat": "c1", "system": 1_000}
    told = {"chat": "c1", "attempt": "a1", "before": 60_000}
    robot.report(
        {**sizes, "revision": "r1", "topics": [{"id": "t1", "tokens": 57_000}],
         "current": {"tokens": 2_000}},
        {"type": "compaction.started", "trigger": "proactive", **told},
        {"type": "compaction.finished", "reported": "done", "after": 25_000, **told},
        {**sizes, "revision": "r2", "bulks": [{"id": "b1", "tokens": 22_000}],
         "current": {"tokens": 2_000}},
        {"type": "note", "chat": "c1", "level": "info", "text": "long after it"},
    )  # fmt: skip
    page = viewer.get(f"/chats/{pk}/").content.decode()
    link = re.search(r'href="(/chats/\d+/attempts/\d+/)"', page)
    assert link is not None
    opened = read(viewer.get(link[1]).content.decode())
    text = " ".join(opened.text.split())
    assert "topics 57,000 → 0" in text and "bulks 0 → 22,000" in text
    assert "compaction.started" in text and "compaction.finished" in text
    assert "long after it" not in text and "model.replied" not in text
    assert viewer.get(f"/chats/{pk}/attempts/1/").status_code == 404
