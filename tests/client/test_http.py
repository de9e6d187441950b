"""Events by plain HTTP, against a real server that speaks the protocol's answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from ctxhealth.client import PostFailed, post_events


class _Intake(BaseHTTPRequestHandler):
    """Stores what comes, in order; ``fail`` answers everything with that status."""

    stored: ClassVar[list[dict[str, Any]]] = []
    seen: ClassVar[list[dict[str, str]]] = []
    fail: int | None = None

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append({key.lower(): value for key, value in self.headers.items()})
        self.seen[-1]["path"] = self.path
        if self.fail is not None:
            self._answer(self.fail, {"error": {"code": "busy", "detail": "later"}})
            return
        results = []
        for line in raw.splitlines():
            event = json.loads(line)
            known = any(event["seq"] == other["seq"] for other in self.stored)
            if not known:
                self.stored.append(event)
            results.append({"seq": event["seq"], "status": "duplicate" if known else "stored"})
        acked = max(event["seq"] for event in self.stored)
        self._answer(200, {"epoch": "e", "acked": acked, "results": results})

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Retry-After", "7")
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def intake() -> Iterator[type[_Intake]]:
    handler = type("Intake", (_Intake,), {"stored": [], "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield handler
    server.shutdown()
    server.server_close()


def _post(intake: Any, count: int = 3, first: int = 1, **more: Any) -> dict[str, Any]:
    events = [{"type": "note", "ts": n, "text": f"n{n}", **more} for n in range(count)]
    return post_events(intake.url, "ctxh_t", "billy", "e", first, events)


def test_events_are_numbered_and_the_headers_name_the_stream(intake: Any) -> None:
    answer = _post(intake, first=5)
    assert answer["acked"] == 7
    assert [event["seq"] for event in intake.stored] == [5, 6, 7]
    (headers,) = intake.seen
    assert headers["path"] == "/api/v1/events"
    assert headers["authorization"] == "Bearer ctxh_t"
    assert (headers["ctxhealth-agent"], headers["ctxhealth-epoch"]) == ("billy", "e")
    assert headers["ctxhealth-first-seq"] == "5"
    assert "cookie" not in headers and "origin" not in headers


def test_sending_the_same_again_stores_nothing_twice(intake: Any) -> None:
    _post(intake)
    answer = _post(intake)
    assert {result["status"] for result in answer["results"]} == {"duplicate"}
    assert len(intake.stored) == 3


def test_many_events_go_in_requests_of_a_size_the_server_takes(intake: Any) -> None:
    answer = _post(intake, count=2_500)
    assert len(intake.seen) == 3
    assert [headers["ctxhealth-first-seq"] for headers in intake.seen] == ["1", "1001", "2001"]
    assert answer["acked"] == 2_500 and len(answer["results"]) == 2_500
    large = _post(intake, count=60, first=2_501, pad="x" * 40_000)
    assert large["acked"] == 2_560
    assert all(int(headers["content-length"]) <= 1024 * 1024 for headers in intake.seen)


def test_secrets_are_redacted_before_they_leave(intake: Any) -> None:
    secret = "ghp_" + "a1B2" * 9
    _post(intake, detail=secret)
    assert secret not in json.dumps(intake.stored)


@pytest.mark.parametrize("status", [401, 403, 409, 413, 422, 429, 500, 503])
def test_a_refusal_names_status_detail_and_when_to_come_back(intake: Any, status: int) -> None:
    intake.fail = status
    with pytest.raises(PostFailed) as raised:
        _post(intake)
    failed = raised.value
    assert (failed.status, failed.retry_s) == (status, 7.0)
    assert "later" in failed.detail and failed.answer["error"]["code"] == "busy"


def test_no_answer_and_no_address_are_said_without_a_traceback() -> None:
    with pytest.raises(PostFailed, match="no answer") as raised:
        post_events("http://127.0.0.1:9", "t", "a", "e", 1, [{"type": "note"}], timeout=2)
    assert raised.value.status is None
    with pytest.raises(PostFailed, match="ftp"):
        post_events("ftp://x", "t", "a", "e", 1, [{"type": "note"}])


def test_nothing_to_send_asks_nobody(intake: Any) -> None:
    assert post_events(intake.url, "t", "a", "e", 1, []) == {"results": []}
    assert intake.seen == []
