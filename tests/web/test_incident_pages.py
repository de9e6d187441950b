"""The list of incidents, one of them at any moment, and any stretch of a chat as a review."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from ctxhealth.store import queries
from tests.live.world import Agent
from tests.web.markup import read
from tests.web.test_hostile_text import CORPUS
from tests.web.troubled import incident_of

HTMX = {"HX-Request": "true"}


def page(client: Client, path: str, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, (path, answer.status_code)
    return answer.content.decode()


def text_of(html: str) -> str:
    return " ".join(read(html).text.split())


def test_without_an_incident_the_list_says_how_one_opens(viewer: Client) -> None:
    text = text_of(page(viewer, "/incidents/"))
    assert "No incident is open." in text
    assert "gets a critical finding" in text
    assert "Nothing has been set aside" in text_of(page(viewer, "/incidents/?show=reviews"))


def test_the_list_shows_what_and_why_and_the_navigation_counts(
    robot: Agent, viewer: Client
) -> None:
    first, second = incident_of(robot, "c1"), incident_of(robot, "c2")
    closed = incident_of(robot, "c3", closed=True)
    html = page(viewer, "/incidents/")
    text = text_of(html)
    assert "The utility model glm-flash (zai) answers nothing" in text
    assert "2 chats, one cause" in text
    assert "nobody" in text and "not yet" in text
    assert f'href="/incidents/{first}/"' in html and f'href="/incidents/{second}/"' in html
    assert f'href="/incidents/{closed}/"' not in html
    assert f'href="/incidents/{closed}/"' in page(viewer, "/incidents/?show=closed")
    board = read(page(viewer, "/")).text
    assert re.search(r"Incidents\s*2 open", board)


def test_filters_stand_in_the_address_and_what_is_polled_is_the_table_alone(
    robot: Agent, viewer: Client
) -> None:
    first, second = incident_of(robot, "c1"), incident_of(robot, "c2")
    only = page(viewer, "/incidents/?q=c2")
    assert f"/incidents/{second}/" in only and f'href="/incidents/{first}/"' not in only
    assert "No incident fits these filters" in page(viewer, "/incidents/?agent=nobody")
    assert f"/incidents/{first}/" in page(viewer, "/incidents/?root=summarizer_empty")
    part = viewer.get("/incidents/?q=c2&page=1", headers=HTMX).content.decode()
    assert part.lstrip().startswith('<div id="incident-list" data-poll="?q=c2&amp;page=1">')
    for odd in ("?page=x", "?page=-1", "?page=999999", "?show=%00", "?q=%00", "?page=" + "9" * 40):
        assert viewer.get(f"/incidents/{odd}").status_code == 200, odd


def test_an_incidents_page_tells_cause_figures_and_what_was_judged(
    robot: Agent, viewer: Client
) -> None:
    number = incident_of(robot, closed=True)
    text = text_of(page(viewer, f"/incidents/{number}/"))
    for said in ("Stopped closed", "root", "The summarizer answers nothing", "29,100",
                 "by summaries without a result", "To detect", "To recover", "nobody",
                 "Nobody pressed anything", "as it was judged then", "UTC"):  # fmt: skip
        assert said in text, said
    links = queries.incident_detail(number).view.chain  # type: ignore[union-attr]
    html = page(viewer, f"/incidents/{number}/")
    for link in links:
        assert f'href="?at={link.seq}#moment"' in html


def test_the_chats_page_leads_to_its_open_incident(robot: Agent, viewer: Client) -> None:
    number = incident_of(robot)
    chat = queries.incident_detail(number).row.chat  # type: ignore[union-attr]
    assert f'href="/chats/{chat}/incident/"' in page(viewer, f"/chats/{chat}/")
    answer = viewer.get(f"/chats/{chat}/incident/")
    assert answer.headers["Location"] == f"/incidents/{number}/"
    calm = robot.chat("calm", 50_000)
    assert f"/chats/{calm}/incident/" not in page(viewer, f"/chats/{calm}/")
    assert viewer.get(f"/chats/{calm}/incident/").status_code == 404


def test_a_moment_shows_the_chat_as_of_then(robot: Agent, viewer: Client) -> None:
    number = incident_of(robot, closed=True)
    row = queries.incident_detail(number).row  # type: ignore[union-attr]
    path = f"/incidents/{number}/moment/"
    early, late = (
        viewer.get(f"{path}?at={seq}", headers=HTMX).content.decode()
        for seq in (row.opened_seq - 1, row.closed_seq)
    )
    assert "gave no relief" not in text_of(early)
    assert "Stalled" not in text_of(late) and "70,000" in text_of(late)
    stopped = viewer.get(f"{path}?at={row.opened_seq + 2}", headers=HTMX).content.decode()
    assert "Stopped" in text_of(stopped) and "113,004" in stopped
    at = re.search(r'data-at="(\d+)"', stopped)
    assert at is not None
    by_time = viewer.get(f"{path}?t={at[1]}", headers=HTMX).content.decode()
    assert 'id="moment"' in by_time
    # The whole page opens at the same moment, without a script.
    whole = page(viewer, f"/incidents/{number}/?at={row.opened_seq + 2}")
    assert f'id="moment" class="card moment" aria-labelledby="h-moment" ' \
           f'data-seq="{row.opened_seq + 2}"' in whole  # fmt: skip
    assert f"at={row.opened_seq + 3}#moment" in whole


@pytest.mark.parametrize("odd", ["", "?at=x", "?t=x", "?at=-1", "?t=1e9", "?at=" + "9" * 30])
def test_an_odd_moment_is_refused_by_name(robot: Agent, viewer: Client, odd: str) -> None:
    number = incident_of(robot)
    answer = viewer.get(f"/incidents/{number}/moment/{odd}")
    assert answer.status_code == 400
    assert answer.content.decode().split(":")[0] in ("t", "at")


def test_moments_outside_the_range_are_its_ends(robot: Agent, viewer: Client) -> None:
    number = incident_of(robot)
    for query in ("t=5", "at=99999999", "t=99999999999999"):
        assert viewer.get(f"/incidents/{number}/moment/?{query}").status_code == 200
    assert viewer.get("/incidents/99999/").status_code == 404
    assert viewer.get("/incidents/99999/moment/?at=1").status_code == 404


def test_any_stretch_of_a_calm_chat_can_be_reviewed_and_kept(
    robot: Agent, operator: Client, viewer: Client
) -> None:
    pk = robot.chat("calm", 50_000)
    for _ in range(5):
        robot.turn("calm", 51_000)
    html = page(viewer, f"/chats/{pk}/review/?first=3&last=9")
    assert "7 events" in text_of(html)
    assert "Keep as a review" not in html
    assert f"/chats/{pk}/review/" in page(viewer, f"/chats/{pk}/")
    assert "Keep as a review" in page(operator, f"/chats/{pk}/review/")
    kept = operator.post(
        f"/chats/{pk}/review/", {"first": "3", "last": "9", "title": "Why so slow?"}
    )
    assert kept.status_code == 302
    text = text_of(page(viewer, kept.headers["Location"]))
    assert "Why so slow?" in text and "set aside by a-operator" in text
    assert "Why so slow?" in text_of(page(viewer, "/incidents/?show=reviews"))


@pytest.mark.parametrize(
    "query",
    [
        "first=x",
        "since=yesterday",
        "last=3&first=9",
        "since=2026-13-01T00:00",
        "at=0",
        "until=5&since=9",
    ],
)
def test_an_odd_stretch_is_refused_by_name(robot: Agent, viewer: Client, query: str) -> None:
    pk = robot.chat("c1", 50_000)
    answer = viewer.get(f"/chats/{pk}/review/?{query}")
    assert answer.status_code == 400
    named = query.split("=")[0]
    assert f"{named}:" in read(answer.content.decode()).text


def test_a_stretch_by_moments_holds_the_events_between(robot: Agent, viewer: Client) -> None:
    pk = robot.chat("c1", 50_000)
    at = [event.at for event in queries.chat_events(pk)]
    html = page(viewer, f"/chats/{pk}/review/?since={at[0]}&until={at[-1]}")
    assert f"{len(at)} events" in text_of(html)
    # Where no event lies between, those on either side are shown.
    html = page(viewer, f"/chats/{pk}/review/?since={at[-1] + 5}&until={at[-1] + 9}")
    assert "1 event" in text_of(html)
    assert "1 event" in text_of(page(viewer, f"/chats/{pk}/review/?until=1000"))


def test_hostile_words_reach_no_incident_page_as_markup(robot: Agent, operator: Client) -> None:
    said = "".join(CORPUS)[:1_500]
    number = incident_of(robot, title=said[:200])
    robot.report({"type": "agent.stopped", "chat": "c1", "reason": said},
                 {"type": "model.failed", "chat": "c1", "request": "r", "error": "other",
                  "detail": said})  # fmt: skip
    operator.post(f"/incidents/{number}/notes/", {"text": said})
    operator.post(f"/incidents/{number}/verdict/", {"verdict": "root_cause", "text": said[:900]})
    chat = queries.incident_detail(number).row.chat  # type: ignore[union-attr]
    for path in ("/incidents/", f"/incidents/{number}/", f"/chats/{chat}/review/",
                 f"/incidents/{number}/moment/?at=8"):  # fmt: skip
        markup = read(page(operator, path))
        for element in markup.elements:
            assert element.tag not in {"img", "iframe", "style"}, path
            assert not [name for name in element.attributes if name.startswith("on")], path
            if element.tag == "script":
                assert (element.attributes["src"] or "").startswith("/static/"), path


def test_a_shared_link_asks_for_the_login_and_lands_there(robot: Agent, db: None) -> None:
    number = incident_of(robot)
    answer = Client().get(f"/incidents/{number}/?at=5")
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"/login/?next=/incidents/{number}/%3Fat%3D5"
    for path in ("report.zip", "bundle.json", "moment/?at=5"):
        assert Client().get(f"/incidents/{number}/{path}").status_code == 302
