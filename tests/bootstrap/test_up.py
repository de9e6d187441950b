"""`manage.py up` and `serve`, as processes: what they make, print, refuse and clean up."""

from __future__ import annotations

import re
import signal
import socket
import stat
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import psutil
import pytest

from tests.bootstrap.server import END_SECONDS, Server, run

Starter = Callable[..., Server]
LOGIN = re.compile(r"(http://\S+/login/once/\S+)")
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
TOKEN = re.compile(r"ctxh_\S+")
LAST_LINE = "Ctrl-C ends it."


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def server(data_dir: Path) -> Iterator[Starter]:
    """`server("up")` starts one on a free port; all are gone after the test."""
    started: list[Server] = []

    def start(command: str, *args: str, says: str = LAST_LINE, **settings: str) -> Server:
        made = Server(data_dir, command, "--port", "0", *args, **settings)
        started.append(made)
        made.wait_for(says)
        return made

    yield start
    for made in started:
        made.kill()


@pytest.fixture
def browser() -> urllib.request.OpenerDirector:
    """Follows redirects and keeps cookies."""
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))


def link(server: Server) -> str:
    match = LOGIN.search(server.output)
    assert match, server.output
    return match[1]


def log_in(browser: urllib.request.OpenerDirector, url: str) -> int:
    """Open the link and press its button; the status of the answer."""
    with browser.open(url, timeout=20) as page:
        field = CSRF.search(page.read().decode())
    assert field, "the link shows no button to log in with"
    form = urllib.parse.urlencode({"csrfmiddlewaretoken": field[1]}).encode()
    try:
        with browser.open(url, data=form, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_first_start_prints_a_login_that_works_and_a_token(
    server: Starter, data_dir: Path, browser: urllib.request.OpenerDirector
) -> None:
    first = server("up", "--no-open")
    assert TOKEN.search(first.output)
    assert log_in(browser, link(first)) == 200
    agents = browser.open(urllib.parse.urljoin(link(first), "/agents/"), timeout=20)
    assert urllib.parse.urlsplit(agents.url).path == "/agents/", "not logged in"
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((data_dir / "secret.key").stat().st_mode) == 0o600


def test_a_login_link_works_once(server: Starter, browser: urllib.request.OpenerDirector) -> None:
    url = link(server("up", "--no-open"))
    assert log_in(browser, url) == 200
    stranger = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    assert log_in(stranger, url) == 403


def test_a_second_start_prints_a_new_login_and_no_token(server: Starter) -> None:
    first = server("up", "--no-open")
    assert first.end() == 0
    second = server("up", "--no-open")
    assert not TOKEN.search(second.output)
    assert link(second).rpartition("/login")[2] != link(first).rpartition("/login")[2]
    assert second.end() == 0
    third = server("up", "--no-open", "--new-token")
    assert TOKEN.search(third.output)


def test_a_second_server_on_the_same_data_is_refused(server: Starter, data_dir: Path) -> None:
    first = server("up", "--no-open")
    result = run(data_dir, "up", "--port", "0", "--no-open")
    assert result.returncode == 2
    assert result.stderr.startswith(f"Another server (process {first.process.pid}) already uses")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["up", "serve"])
def test_a_taken_port_is_told_in_one_sentence(command: str, data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(data_dir, command, "--port", str(port))
    assert result.returncode == 2
    assert result.stderr == (
        f"Port {port} is taken by another program: choose another one with --port.\n"
    )


def test_a_host_that_is_not_this_machine_is_told_in_one_sentence(data_dir: Path) -> None:
    result = run(data_dir, "serve", "--host", "192.0.2.1")
    assert result.returncode == 2
    assert result.stderr == (
        "192.0.2.1 is not an address of this machine: choose another one with --host.\n"
    )


def test_a_file_that_is_no_database_is_told_in_one_sentence(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o700)
    path = data_dir / "ctxhealth.sqlite3"
    path.write_bytes(b"this was a database once" * 100)
    result = run(data_dir, "serve", "--port", "0")
    assert result.returncode == 2
    assert result.stderr.startswith(f"The database {path} cannot be used:")
    assert result.stderr.count("\n") == 1


def test_a_postgresql_that_does_not_answer_is_told_in_one_sentence(data_dir: Path) -> None:
    url = "postgres://ctxhealth:secret@127.0.0.1:9/ctxhealth"
    result = run(data_dir, "serve", "--port", "0", DATABASE_URL=url)
    assert result.returncode == 2
    assert result.stderr.startswith("The PostgreSQL database ctxhealth at 127.0.0.1 cannot be used")
    assert "secret" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_first_start_on_postgresql_logs_in_too(
    server: Starter, postgres_url: str, browser: urllib.request.OpenerDirector
) -> None:
    first = server("up", "--no-open", DATABASE_URL=postgres_url)
    assert log_in(browser, link(first)) == 200
    assert first.end() == 0


def test_serve_prints_no_secret(server: Starter) -> None:
    made = server("serve", says="serves at")
    assert not TOKEN.search(made.output)
    assert "/login/once/" not in made.output
    address = re.search(r"serves at (\S+)", made.output)
    assert address
    assert urllib.request.urlopen(f"{address[1]}/healthz", timeout=20).status == 200
    assert made.end() == 0


def test_ctrl_c_ends_it_without_a_trace(server: Starter) -> None:
    made = server("up", "--no-open")
    assert made.end(signal.SIGINT) == 130
    made.wait_for("Stopped.")
    assert "Traceback" not in made.output


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_demo_agents_end_with_the_server(server: Starter, how: signal.Signals) -> None:
    made = server("up", "--demo", "--no-open")
    demo = wait_for_children(made.process.pid)
    made.end(how)
    gone, alive = psutil.wait_procs(demo, timeout=END_SECONDS)
    assert (len(gone), alive) == (len(demo), [])


def wait_for_children(pid: int) -> list[psutil.Process]:
    """The demo's supervisor and its agents, once there are some."""
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        children = psutil.Process(pid).children(recursive=True)
        if len(children) > 2:
            return children
        time.sleep(0.05)
    raise AssertionError("no demo agent was started")
