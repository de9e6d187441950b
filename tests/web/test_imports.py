"""The Import page: who may, what arrives, what is refused, what is shown."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from ctxhealth.imports.spool import Spool, spool
from ctxhealth.imports.worker import ImportWorker
from ctxhealth.store import queries
from tests.readers.session import SESSION, Session
from tests.web.markup import read


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Iterator[Spool]:
    settings.CTXHEALTH_DATA_DIR = tmp_path
    yield spool()


def session(turns: int = 2) -> bytes:
    made = Session()
    for number in range(turns):
        made.turn(f"m{number}", 20_000 + number)
    return made.bytes()


def upload(*files: tuple[str, bytes]) -> dict[str, list[SimpleUploadedFile]]:
    return {"files": [SimpleUploadedFile(name, data) for name, data in files]}


def read_all() -> None:
    worker = ImportWorker()
    while worker.run_next():
        pass


def text_of(client: Client, path: str = "/import/") -> str:
    return read(client.get(path).content.decode()).text


def test_a_file_is_brought_read_and_shown_with_its_chat(operator: Client) -> None:
    answer = operator.post("/import/", upload(("mine.jsonl", session())))
    assert answer.status_code == 302
    assert "waits" in text_of(operator)
    read_all()
    text = text_of(operator)
    for said in ("mine.jsonl", "imported", "a Claude Code session", "4 lines", "by a-operator"):
        assert said in text, said
    chat = queries.chat_find("claude-code (imported)", SESSION)
    assert chat is not None
    assert f'href="/chats/{chat.id}/"' in operator.get("/import/").content.decode()
    assert operator.get(f"/chats/{chat.id}/").status_code == 200


def test_several_files_of_one_drop_stand_together(operator: Client) -> None:
    operator.post("/import/", upload(("a.jsonl", session()), ("b.gz", gzip.compress(session(3)))))
    read_all()
    rows = queries.imports_page().rows
    assert [(row.name, row.state) for row in rows] == [("b.gz", "done"), ("a.jsonl", "done")]
    assert rows[0].batch == rows[1].batch
    assert rows[0].chat == rows[1].chat


def test_a_press_by_htmx_gets_the_list_that_looks_again_by_itself(operator: Client) -> None:
    answer = operator.post(
        "/import/", upload(("a.jsonl", session())), headers={"HX-Request": "true"}
    )
    html = answer.content.decode()
    assert 'hx-trigger="every 1s"' in html
    assert "<html" not in html
    read_all()
    drop = queries.imports_page().rows[0].batch
    looked = operator.get(f"/import/list/?drop={drop}", headers={"HX-Request": "true"})
    assert looked.status_code == 286
    assert "hx-trigger" not in looked.content.decode()
    chat = queries.chat_find("claude-code (imported)", SESSION)
    assert chat is not None
    assert looked["HX-Redirect"] == f"/chats/{chat.id}/"


@pytest.mark.parametrize(
    "files",
    [
        (("a.jsonl", session() + b"not a row\n"),),
        (("a.jsonl", session()), ("b.jsonl", session(3))),
        (("a.jsonl", b"nothing of it"),),
    ],
)
def test_nobody_is_sent_away_from_what_should_be_read_first(
    operator: Client, files: tuple[tuple[str, bytes], ...]
) -> None:
    operator.post("/import/", upload(*files))
    read_all()
    drop = queries.imports_page().rows[0].batch
    looked = operator.get(f"/import/list/?drop={drop}", headers={"HX-Request": "true"})
    assert "HX-Redirect" not in looked


def test_troubles_stand_line_by_line_on_the_file_s_own_page(operator: Client) -> None:
    lines = session().splitlines()
    lines.insert(1, b'{"type":"user","password":"hunter2"')
    operator.post("/import/", upload(("a.jsonl", b"\n".join(lines) + b"\n")))
    read_all()
    row = queries.imports_page().rows[0]
    text = text_of(operator, f"/import/{row.id}/")
    assert "1 unreadable line" in text
    assert '{"type":"…","password":"…" (35 bytes)' in text
    assert "hunter2" not in text


def test_a_viewer_sees_the_list_and_no_form(viewer: Client, operator: Client) -> None:
    operator.post("/import/", upload(("a.jsonl", session())))
    html = viewer.get("/import/").content.decode()
    assert "a.jsonl" in html and 'type="file"' not in html
    assert "role operator" in html
    answer = viewer.post("/import/", upload(("b.jsonl", session())))
    assert answer.status_code == 403
    assert [row.name for row in queries.imports_page().rows] == ["a.jsonl"]


def test_a_read_only_server_takes_no_file(operator: Client, settings: Settings) -> None:
    settings.CTXHEALTH_READ_ONLY = True
    assert operator.post("/import/", upload(("a.jsonl", session()))).status_code == 403
    assert "read-only" in text_of(operator)
    assert queries.imports_page().rows == []


def test_a_stranger_uploads_nothing(db: None, client: Client, folder: Spool) -> None:
    answer = client.post("/import/", upload(("a.jsonl", session())))
    assert answer.status_code == 302 and answer["Location"].startswith("/login/")
    assert folder.names() == set()


def test_a_page_that_is_too_old_brings_nothing_and_leaves_nothing(
    operator: Client, folder: Spool
) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies
    assert strict.post("/import/", upload(("a.jsonl", session()))).status_code == 403
    assert queries.imports_page().rows == []
    assert folder.names() == set()


def test_no_file_is_a_sentence(operator: Client) -> None:
    answer = operator.post("/import/", {})
    assert answer.status_code == 422
    assert "No file was chosen." in read(answer.content.decode()).text


def test_a_file_over_the_limit_is_refused_and_its_neighbour_is_read(
    operator: Client, settings: Settings, folder: Spool
) -> None:
    settings.CTXHEALTH_IMPORT_MB = 1
    operator.post("/import/", upload(("big", b"x" * 1_000_001), ("small.jsonl", session())))
    small, big = queries.imports_page().rows
    assert (big.state, big.reason) == ("refused", "It has more than 1 MB, the limit here.")
    assert small.state == "queued"
    assert folder.names() == {small.spooled}


def test_more_files_than_one_drop_takes_are_told_apart(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.web.imports_upload.FILES", 2)
    operator.post("/import/", upload(*[(f"{n}.jsonl", session()) for n in range(3)]))
    assert [row.state for row in queries.imports_page().rows] == ["refused", "queued", "queued"]


def test_far_too_many_files_are_refused_as_a_whole(operator: Client, folder: Spool) -> None:
    answer = operator.post("/import/", upload(*[(f"{n}", b"x") for n in range(101)]))
    assert answer.status_code == 400
    assert "One drop takes 50 files." in read(answer.content.decode()).text
    assert folder.names() == set()


def test_a_disk_that_is_full_is_told(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Spool) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Spool, "begin", full)
    operator.post("/import/", upload(("a.jsonl", session())))
    row = queries.imports_page().rows[0]
    assert row.state == "refused" and "disk takes no more" in row.reason


def test_a_name_cannot_leave_the_page(operator: Client) -> None:
    operator.post("/import/", upload(("../../<b>etc&passwd</b>", b"x")))
    html = operator.get("/import/").content.decode()
    assert "<b>etc" not in html
    assert queries.imports_page().rows[0].name.count("/") == 0


def test_the_list_goes_on_to_older_files(operator: Client) -> None:
    for batch in range(2):
        operator.post("/import/", upload(*[(f"{batch}-{n}", b"x") for n in range(30)]))
    html = operator.get("/import/").content.decode()
    assert "Older" in html and "0-29" in html and ">0-1<" not in html
    older = read(html)
    link = next(
        element.attributes["href"]
        for element in older.elements
        if element.tag == "a" and "before=" in (element.attributes.get("href") or "")
    )
    assert link is not None
    assert ">0-1<" in operator.get(link).content.decode()


def test_an_unknown_import_is_not_found(operator: Client) -> None:
    assert operator.get("/import/999/").status_code == 404
