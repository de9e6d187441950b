"""An incident as files: the report with its charts, and the bundle that gives the same page."""

from __future__ import annotations

import io
import re
import zipfile
from xml.etree import ElementTree

import msgspec
import pytest
from django.test import Client

from ctxhealth.store import incarnation, queries
from ctxhealth.store.bundles import form, import_bundle, packing
from ctxhealth.web.export.report import escaped
from tests.live.world import Agent
from tests.web.markup import read
from tests.web.test_hostile_text import CORPUS
from tests.web.troubled import incident_of

ACTIVE = re.compile(rb"<script|javascript:|\son\w+\s*=|<img|@import|<iframe", re.IGNORECASE)


def files_of(client: Client, number: int) -> dict[str, bytes]:
    answer = client.get(f"/incidents/{number}/report.zip")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/zip"
    assert f'filename="incident-{number}-' in answer.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_report_is_markdown_with_its_charts_beside_it(robot: Agent, operator: Client) -> None:
    number = incident_of(robot, closed=True)
    operator.post(f"/incidents/{number}/notes/", {"text": "- the **quota**"})
    files = files_of(operator, number)
    assert set(files) == {"report.md", "report.html", "axis.svg", "begin.svg", "end.svg"}
    text = files["report.md"].decode()
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        assert picture in files
    for said in ("# Incident", "**(root)**", "| Tokens burnt | 29,100 |", "UTC", "- the **quota**",
                 "a-operator", f"/incidents/{number}/", "## As judged then"):  # fmt: skip
        assert said in text, said


def test_every_chart_is_a_whole_svg_that_needs_no_other_file(
    robot: Agent, operator: Client
) -> None:
    files = files_of(operator, incident_of(robot, closed=True))
    for name in ("axis.svg", "begin.svg", "end.svg"):
        root = ElementTree.fromstring(files[name])
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert int(root.attrib["width"]) > 900 and int(root.attrib["height"]) > 100
        assert not re.search(rb'href="(?!#)|url\((?!#)', files[name])
    words = ElementTree.fromstring(files["axis.svg"]).itertext()
    assert {"turns", "compactions", "latches", "findings", "stalled"} <= {w.strip() for w in words}


def test_hostile_words_stay_words_in_every_file(robot: Agent, operator: Client) -> None:
    said = "".join(CORPUS)[:1_500]
    number = incident_of(robot, title=said[:200])
    robot.report({"type": "agent.stopped", "chat": "c1", "reason": said})
    operator.post(f"/incidents/{number}/verdict/", {"verdict": "root_cause", "text": said[:900]})
    files = files_of(operator, number)
    for name, content in files.items():
        if name != "report.md":
            text = (
                content if name != "report.html" else re.sub(rb"<title>.*?</title>", b"", content)
            )
            assert not ACTIVE.search(re.sub(rb'aria-label="[^"]*"|>[^<]*<', b"><", text)), name
        if name.endswith(".svg"):
            ElementTree.fromstring(content)
    markup = read(files["report.html"].decode())
    assert not [e for e in markup.elements if e.tag in ("script", "img", "iframe")]


def test_a_text_in_a_table_stays_in_its_cell() -> None:
    assert escaped("a | b\n# c <b> [x](y) `z` *w*") == (r"a \| b \# c \<b\> \[x\](y) \`z\` \*w\*")


def test_the_bundle_gives_the_same_page_on_another_server(robot: Agent, operator: Client) -> None:
    number = incident_of(robot, closed=True)
    operator.post(f"/incidents/{number}/notes/", {"text": "The *quota* was gone."})
    operator.post(f"/incidents/{number}/verdict/", {"verdict": "root_cause", "text": "quota"})
    answer = operator.get(f"/incidents/{number}/bundle.json")
    assert answer.headers["Content-Disposition"].endswith('.ctxhealth.json"')
    data: bytes = answer.content
    incarnation.begin_anew()
    brought = import_bundle(data)
    assert brought.incident != number
    here, there = (
        _comparable(operator.get(f"/incidents/{each}/?at=8").content.decode())
        for each in (brought.incident, number)
    )
    assert here == there
    chat = queries.incident_detail(number).row.chat  # type: ignore[union-attr]
    for seq in range(1, queries.chat_get(chat).chat_seq + 1):  # type: ignore[union-attr]
        fragments = [
            _comparable(operator.get(f"/incidents/{each}/moment/?at={seq}").content.decode())
            for each in (brought.incident, number)
        ]
        assert fragments[0] == fragments[1], seq
    assert "imported" in read(operator.get(f"/incidents/{brought.incident}/").content.decode()).text


def test_an_incident_that_was_open_when_exported_says_so(robot: Agent, operator: Client) -> None:
    number = incident_of(robot)
    data: bytes = operator.get(f"/incidents/{number}/bundle.json").content
    incarnation.begin_anew()
    brought = import_bundle(data)
    text = read(operator.get(f"/incidents/{brought.incident}/").content.decode()).text
    assert "still open when its bundle was made" in text
    assert "and goes on" not in text
    # What this server added to close the log is no part of what happened.
    there, here = (queries.incident_detail(each).row.chat for each in (number, brought.incident))  # type: ignore[union-attr]
    count = queries.chat_get(there).chat_seq  # type: ignore[union-attr]
    review = read(operator.get(f"/chats/{here}/review/").content.decode()).text
    assert f"{count} events" in review
    assert f"/incidents/{brought.incident}/" not in operator.get("/incidents/").content.decode()


def _comparable(html: str) -> list[str]:
    """What the page says and draws from the sentence to the notes, without numbers of rows."""
    start = html.index('id="incident-now"') if 'id="incident-now"' in html else 0
    end = html.index('id="h-others"') if 'id="h-others"' in html else len(html)
    part = re.sub(r"/(chats|incidents)/\d+/", r"/\1/N/", html[start:end])
    part = re.sub(r'csrfmiddlewaretoken" value="[^"]*"|note-\d+|notes/\d+|edit=\d+', "", part)
    part = re.sub(r'<p class="n-head">.*?</p>|data-(poll|head)="[^"]*"', "", part, flags=re.DOTALL)
    # Ours is one of two now, and a note that came with it is nobody's to edit.
    part = re.sub(r'<section class="card" id="owner".*?</section>', "", part, flags=re.DOTALL)
    return part.split("\n")


def test_a_log_that_is_too_long_for_a_bundle_is_said_to_be(
    robot: Agent, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = incident_of(robot)
    monkeypatch.setattr(packing, "MOST_EVENTS", 3)
    answer = operator.get(f"/incidents/{number}/bundle.json")
    assert answer.status_code == 413
    assert "a bundle holds 3" in answer.content.decode()


def test_a_bundle_names_its_form_and_holds_the_log_as_it_stands(
    robot: Agent, viewer: Client
) -> None:
    number = incident_of(robot)
    bundle = msgspec.json.decode(
        viewer.get(f"/incidents/{number}/bundle.json").content, type=form.Bundle
    )
    assert (bundle.format, bundle.version, bundle.exported_by) == (
        "ctxhealth.bundle", 1, "a-viewer",
    )  # fmt: skip
    chat = queries.incident_detail(number).row.chat  # type: ignore[union-attr]
    stored = queries.chat_events(chat, limit=1_000)
    assert [event.body for event in bundle.events] == [event.body for event in stored]
    trail = queries.audit_page(chat=chat, action="export.bundle").rows
    assert [line.by for line in trail] == ["a-viewer"]
