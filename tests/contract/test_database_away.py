"""The database goes away under a running server: everybody is told in time, nobody sees a trace."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from tests.browser.server import Server
from tests.contract.agent import RawAgent
from tests.run import postgres
from tests.store.streams import opened

TOLD_S = 3.5
ENDED_S = 6.0


class Stranded:
    """A server whose PostgreSQL was stopped after the server had served."""

    def __init__(self, folder: Path, cluster: postgres.Cluster) -> None:
        self.server = Server(folder, DATABASE_URL=cluster.create_database())
        scopes = ["ingest", "command", "read"]
        made = self.server.seed(people={"ada": "operator"}, tokens={"a": scopes}, links=1)
        self.token: str = made["tokens"]["a"]
        self.server.start()
        self.jar = CookieJar()
        self._sign_in(made["logins"]["ada"][0])

    def _sign_in(self, link: str) -> None:
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))
        address = self.server.origin + link
        with browser.open(address, timeout=20) as page:
            found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
        assert found is not None
        form = f"csrfmiddlewaretoken={found.group(1)}".encode()
        headers = {"Origin": self.server.origin}
        browser.open(urllib.request.Request(address, form, headers), timeout=20).close()

    def cookie(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.jar)

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str, str]:
        """Status, text and Retry-After, within the time that a caller may wait."""
        request = urllib.request.Request(
            self.server.origin + path,
            data=body,
            headers={"Authorization": f"Bearer {self.token}", **headers},
        )
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                found = answer.status, answer.read().decode(), ""
        except urllib.error.HTTPError as error:
            found = error.code, error.read().decode(), error.headers.get("Retry-After", "")
        assert time.monotonic() - began < TOLD_S, f"{path} took too long"
        return found

    def post(self) -> tuple[int, str, str]:
        headers = {"Ctxhealth-Agent": "away", "Ctxhealth-Epoch": "e1"}
        return self.ask("/api/v1/events", json.dumps(opened(1)).encode(), **headers)


@contextmanager
def without_database(folder: Path) -> Iterator[Stranded]:
    cluster = postgres.start_cluster()
    if cluster is None:
        pytest.skip("needs postgresql: install its server")
    made = Stranded(folder, cluster)
    try:
        assert made.post()[0] == 200
        assert made.ask("/", Cookie=made.cookie())[0] == 200
        cluster.stop()
        yield made
    finally:
        made.server.stop()
        cluster.stop()


@pytest.fixture(scope="module")
def stranded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranded]:
    with without_database(tmp_path_factory.mktemp("away")) as made:
        yield made


def test_events_by_post_are_put_off_with_a_document(stranded: Stranded) -> None:
    status, text, retry = stranded.post()
    assert (status, retry) == (503, "1")
    assert json.loads(text)["error"]["code"] == "busy"


def test_the_api_answers_503_with_its_own_shape(stranded: Stranded) -> None:
    status, text, retry = stranded.ask("/api/v1/chats")
    assert (status, retry) == (503, "2")
    assert json.loads(text)["error"]["code"] == "unavailable"


def test_a_page_says_so_with_its_own_style(stranded: Stranded) -> None:
    status, text, retry = stranded.ask("/", Cookie=stranded.cookie())
    assert (status, retry) == (503, "2")
    assert "The database does not answer" in text and "Traceback" not in text


def test_readiness_names_the_database(stranded: Stranded) -> None:
    status, text, _ = stranded.ask("/readyz")
    assert status == 503 and json.loads(text)["database"] != "ok"


def test_agents_are_accepted_and_told_to_come_back(stranded: Stranded) -> None:
    for _ in range(6):
        began = time.monotonic()
        with RawAgent(stranded.server.socket, stranded.token) as agent:
            assert agent.closed()[0] == 1013
        assert time.monotonic() - began < TOLD_S
    assert "Exception in ASGI" not in stranded.server.log()


def test_the_server_ends_in_time_all_the_same(tmp_path: Path) -> None:
    with without_database(tmp_path) as stranded:
        assert stranded.post()[0] == 503
        began = time.monotonic()
        stranded.server.stop()
        assert time.monotonic() - began < ENDED_S, stranded.server.log()[-2_000:]
        assert "Traceback" not in stranded.server.log(), stranded.server.log()[-3_000:]
