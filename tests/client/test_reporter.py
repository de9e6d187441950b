"""The host's side: it is never slowed down, never raised into, and reloads as it likes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.client import Chat, Reporter, live
from ctxhealth.client.runtime import runtime
from tests.client.conftest import Make
from tests.client.server import TOKEN, Server, eventually

ROOT = Path(__file__).resolve().parents[2]


def _texts(server: Server) -> list[str]:
    return [event["text"] for event in server.events("note")]


def _run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_client_imports_without_django_msgspec_or_the_server() -> None:
    done = _run(
        """
        import sys
        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("django", "msgspec", "channels", "uvicorn", "tiktoken"):
                    raise ImportError(name)
        sys.meta_path.insert(0, Refuse())
        import ctxhealth.client, ctxhealth.client.fallback
        from ctxhealth.client import Reporter
        Reporter(agent="a", start=False).chat("c").note("x")
        foreign = {m.split(".")[0] for m in sys.modules} - set(sys.stdlib_module_names)
        print(sorted(foreign - {"ctxhealth", "websockets", "sitecustomize", "__main__"}))
        print([m for m in sys.modules if m.startswith("ctxhealth.") and "client" not in m])
        """
    )
    assert done.returncode == 0, done.stderr
    foreign, rooms = done.stdout.splitlines()
    assert "django" not in foreign and "msgspec" not in foreign
    assert rooms == "[]"


def test_the_folder_works_vendored_under_another_name(tmp_path: Path) -> None:
    for room in ("client", "engine"):
        source = ROOT / "ctxhealth" / room
        target = tmp_path / "plugin" / room
        target.mkdir(parents=True)
        for file in source.glob("*.py"):
            (target / file.name).write_bytes(file.read_bytes())
    (tmp_path / "plugin" / "__init__.py").touch()
    done = _run(
        f"""
        import sys
        sys.path[:0] = [{str(tmp_path)!r}]
        sys.path = [p for p in sys.path if p != {str(ROOT)!r} and p != ""]
        from plugin.client import Reporter
        from plugin.engine import History
        reporter = Reporter(agent="a", start=False)
        reporter.use_engine("c", get_history=History, set_history=print, backup_dir="b")
        print(any(m == "ctxhealth" or m.startswith("ctxhealth.") for m in sys.modules))
        """
    )
    assert done.stdout.strip() == "False", done.stderr


def test_no_call_raises_whatever_it_is_given(make: Make, server: Server) -> None:
    class Evil:
        def __repr__(self) -> str:
            raise RuntimeError

        __str__ = __index__ = __float__ = __iter__ = __len__ = __repr__

    server.stop()
    reporter = make()
    chat = reporter.chat("c", window=Evil(), labels=Evil())
    for evil in (Evil(), None, object(), b"\xff", float("nan"), [Evil()], {Evil: Evil()}, 10**400):
        chat.message_added(evil, evil, evil, tokens=evil, text=evil, ts=evil)  # type: ignore[arg-type]
        chat.history_snapshot(evil, bulks=evil, order=[evil])  # type: ignore[arg-type]
        chat.model_replied(evil, usage=evil, content=evil)  # type: ignore[arg-type]
        chat.compaction_finished(evil, evil, steps=evil)  # type: ignore[arg-type]
        chat.latch_set(evil, holder=evil)  # type: ignore[arg-type]
        chat.note(evil)  # type: ignore[arg-type]
        reporter.note(evil)  # type: ignore[arg-type]
        reporter.event("x", chat=evil, anything=evil)  # type: ignore[arg-type]
        reporter.gap(evil, evil)  # type: ignore[arg-type]
    assert reporter.status()["state"] != "closed"


def test_wrong_arguments_of_the_constructor_are_named() -> None:
    with pytest.raises(ValueError, match="agent"):
        Reporter(agent="")
    with pytest.raises(ValueError, match="text"):
        Reporter(agent="a", text="everything")
    with pytest.raises(ValueError, match="on_replaced"):
        Reporter(agent="a", on_replaced="panic")


@pytest.mark.parametrize("url", ["ftp://x", "nonsense", "http://", "http://user:pw@host", ""])
def test_an_address_that_cannot_be_one_is_logged_and_the_host_goes_on(
    url: str, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = make(url=url)
    reporter.note("x")
    eventually(lambda: reporter.status()["state"] == "unconfigured")
    assert "url" in caplog.text and "pw" not in caplog.text


def test_address_and_token_come_from_the_environment(
    server: Server, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXHEALTH_URL", server.url)
    monkeypatch.setenv("CTXHEALTH_TOKEN", TOKEN)
    assert make(url=None, token=None).wait_connected()


def test_an_address_given_later_connects(server: Server, make: Make) -> None:
    reporter = make(url=None)
    reporter.note("kept")
    eventually(lambda: reporter.status()["state"] == "unconfigured")
    reporter.configure(server.url, TOKEN)
    assert reporter.flush(10)
    assert _texts(server) == ["kept"]


def test_the_queue_in_front_is_bounded_and_its_loss_is_a_gap(server: Server, make: Make) -> None:
    reporter = make(queue_events=100, start=False)
    for number in range(150):
        reporter.note(str(number))
    assert reporter.status()["lost"] == 50
    reporter.start()
    assert reporter.flush(10)
    reporter.note("later")
    assert reporter.flush(10)
    gaps = server.events("gap")
    assert [(gap["count"], gap["reason"]) for gap in gaps] == [(50, "queue_full")]
    assert len(_texts(server)) == 101


def test_the_outbox_is_bounded_while_the_server_is_away_and_its_loss_is_a_gap(
    server: Server, make: Make
) -> None:
    server.stop()
    reporter = make(max_events=50)
    for number in range(200):
        reporter.note(str(number))
    eventually(lambda: reporter.status()["queued"] == 0 and reporter.status()["lost"] == 150)
    server.start()
    eventually(lambda: server.events("gap"), "the gap")
    assert sum(gap["count"] for gap in server.events("gap")) == 150
    assert len(_texts(server)) == 50


def test_an_outbox_that_cannot_be_written_keeps_events_in_memory_until_it_can(
    server: Server, make: Make, tmp_path: Path
) -> None:
    reporter = make(outbox=tmp_path / "box")
    reporter.note("before")
    assert reporter.flush(10)
    outbox = reporter._station.journal.outbox
    with outbox.lock:
        pages = outbox.db.one("PRAGMA page_count")
        outbox.db.one(f"PRAGMA max_page_count={pages}")
    for number in range(300):
        reporter.note(f"{number} " + "x" * 3_000)
    eventually(lambda: reporter.status()["outbox_error"], "the trouble")
    with outbox.lock:
        outbox.db.one("PRAGMA max_page_count=1000000")
    assert reporter.flush(10)
    assert [text.split()[0] for text in _texts(server)] == ["before", *map(str, range(300))]
    assert reporter.status()["outbox_error"] is None


def test_the_same_chat_is_opened_once_and_updated_when_something_changed(
    server: Server, make: Make
) -> None:
    reporter = make()
    first = reporter.chat("c", model="a", window=10)
    assert reporter.chat("c", model="a", window=10) is first
    reporter.chat("c", model="b")
    assert reporter.flush(10)
    kinds = [(e["type"], e.get("model"), e.get("window")) for e in server.stream()]
    assert kinds == [("chat.opened", "a", 10), ("chat.updated", "b", None)]


def test_ids_that_the_host_leaves_out_are_unique_and_returned(server: Server, make: Make) -> None:
    chat = make().chat("c")
    ids = [chat.request_sent() for _ in range(50)] + [chat.turn_started() for _ in range(50)]
    assert len(set(ids)) == 100


def test_a_second_reporter_for_the_same_agent_takes_over_events_handles_and_memory(
    server: Server, make: Make
) -> None:
    server.stop()
    first = make(agent="same")
    old = first.chat("c")
    old.note("one")
    second = make(agent="same")
    old.note("two")
    first.note("three")
    second.chat("c").note("four")
    assert second.generation > first.generation
    assert live("same") is second
    server.start()
    assert first.flush(10)
    assert _texts(server) == ["one", "two", "three", "four"]
    assert len(server.streams) == 1
    first.close()
    assert second.status()["state"] == "connected"


def test_what_a_reporter_that_never_started_was_given_is_taken_over_too(
    server: Server, make: Make
) -> None:
    first = make(agent="same", start=False)
    first.note("one")
    second = make(agent="same")
    second.note("two")
    assert second.flush(10)
    assert _texts(server) == ["one", "two"]


def test_a_takeover_passes_a_file_on_without_losing_or_repeating(
    server: Server, make: Make, tmp_path: Path
) -> None:
    reporters = []
    for number in range(5):
        reporters.append(make(agent="same", outbox=tmp_path / "box"))
        for reporter in reporters:
            reporter.note(f"{number}")
    assert reporters[-1].flush(10)
    assert sorted(_texts(server)) == sorted(str(n) for n in range(5) for _ in range(n + 1))
    assert len(server.streams) == 1


def test_a_takeover_leaves_one_pair_of_threads(server: Server, make: Make) -> None:
    before = set(threading.enumerate())
    for _ in range(6):
        reporter = make(agent="same")
        assert reporter.wait_connected()

    def ours() -> list[str]:
        mine = [t.name for t in set(threading.enumerate()) - before]
        return [name for name in mine if name.startswith("ctxhealth-")]

    eventually(lambda: sorted(ours()) == ["ctxhealth-pump", "ctxhealth-uplink"])


def test_a_command_that_runs_through_a_takeover_ends_once_with_its_result(
    server: Server, make: Make, tmp_path: Path
) -> None:
    go_on = threading.Event()
    first = make(agent="same", outbox=tmp_path / "box", start=False)
    first.on("stop_turn", lambda context: {"after": 5} if go_on.wait(20) else None)
    first.start()
    assert first.wait_connected()
    server.command("k1", "stop_turn")
    eventually(lambda: "started" in server.states("k1"))
    second = make(agent="same", outbox=tmp_path / "box")
    eventually(lambda: second.connected, "the new connection")
    go_on.set()
    assert server.ended("k1")["after"] == 5
    assert server.states("k1") == ["received", "started", "succeeded"]
    eventually(lambda: "k1" not in runtime().running)


def test_a_copy_of_the_package_imported_anew_takes_over_from_the_old_one(
    server: Server, tmp_path: Path
) -> None:
    done = _run(
        """
        import os, sys
        from ctxhealth.client import Reporter
        first = Reporter(agent="same", outbox=os.environ["BOX"])
        old = first.chat("c")
        old.note("one")
        assert first.wait_connected()
        for name in [n for n in sys.modules if n.startswith("ctxhealth")]:
            del sys.modules[name]
        from ctxhealth.client import Reporter as Again
        assert Again is not Reporter
        second = Again(agent="same", outbox=os.environ["BOX"])
        old.note("two")
        second.chat("c").note("three")
        assert second.flush(10)
        print(first.status()["state"], second.status()["state"], second.generation)
        """,
        CTXHEALTH_URL=server.url,
        CTXHEALTH_TOKEN=TOKEN,
        BOX=str(tmp_path / "box"),
    )
    assert done.stdout.split() == ["closed", "connected", "2"], done.stderr
    assert _texts(server) == ["one", "two", "three"]
    assert len(server.streams) == 1


def test_a_process_that_ends_without_close_still_delivers(server: Server) -> None:
    done = _run(
        """
        from ctxhealth.client import Reporter
        Reporter(agent="short-lived").note("last words")
        """,
        CTXHEALTH_URL=server.url,
        CTXHEALTH_TOKEN=TOKEN,
    )
    assert done.returncode == 0 and done.stderr == ""
    assert _texts(server) == ["last words"]
    eventually(lambda: server.byes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_neither_reports_nor_says_bye(server: Server) -> None:
    done = _run(
        """
        import os
        from ctxhealth.client import Reporter
        reporter = Reporter(agent="parent")
        assert reporter.wait_connected()
        child = os.fork()
        if child == 0:
            reporter.note("from the child")
            reporter.chat("c").note("from the child")
            raise SystemExit(0)
        assert os.waitpid(child, 0)[1] == 0
        reporter.note("from the parent")
        assert reporter.flush(10)
        """,
        CTXHEALTH_URL=server.url,
        CTXHEALTH_TOKEN=TOKEN,
    )
    assert done.returncode == 0, done.stderr
    assert _texts(server) == ["from the parent"]
    assert len(server.byes) == 1


def test_close_is_quick_with_the_server_down_and_calls_after_it_are_ignored(
    server: Server, make: Make
) -> None:
    server.stop()
    reporter = make()
    chat = reporter.chat("c")
    eventually(lambda: reporter.status()["last_error"])
    reporter.close()
    reporter.close()
    chat.note("too late")
    assert reporter.status()["state"] == "closed"
    assert live(reporter.agent) is None


def test_wait_below_holds_a_fast_reader_back(server: Server, make: Make) -> None:
    reporter = make(max_events=200)
    sent = 0
    for number in range(2_000):
        if number % 50 == 0:
            assert reporter.wait_below(100, 10)
        sent += reporter.event("note", text=str(number))
    assert reporter.flush(10)
    assert sent == 2_000 and server.events("gap") == []
    assert len(_texts(server)) == 2_000


def test_times_of_the_past_can_be_reported(server: Server, make: Make) -> None:
    reporter = make()
    chat = reporter.chat("c", ts=1_000, model="m")
    chat.turn_started(ts=2_000)
    reporter.event("note", chat="c", ts=3_000, text="x")
    assert reporter.flush(10)
    assert [event["ts"] for event in server.stream()] == [1_000, 2_000, 3_000]


def test_capabilities_can_be_said_as_the_host_knows_better(server: Server, make: Make) -> None:
    reporter = make(capabilities={"read_only": True, "commands": []})
    assert reporter.wait_connected()
    assert server.hellos[0]["caps"]["read_only"] is True
    assert server.hellos[0]["caps"]["commands"] == []


def test_handles_are_safe_to_make_from_many_threads(server: Server, make: Make) -> None:
    reporter = make()
    handles: list[Chat] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        handles.append(reporter.chat("c"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, handles))) == 1
    assert reporter.flush(10)
    assert [event["type"] for event in server.stream()] == ["chat.opened"]


def _status_keys(reporter: Reporter) -> set[str]:
    return set(reporter.status())


def test_status_says_what_a_person_asks_first(make: Make) -> None:
    wanted: set[Any] = {"state", "last_error", "epoch", "acked", "queued", "unacked", "lost"}
    assert wanted <= _status_keys(make())


@pytest.mark.parametrize(
    ("url", "token", "named"),
    [
        ("http://127.0.0.1:99999", "ctxh_a", "Port out of range"),
        ("http://127.0.0.1:8000", "ctxh_a\nctxh_b", "token: must be one word"),
        ("http://127.0.0.1:8000", "tökén", "token: must be one word"),
    ],
)
def test_what_no_request_can_carry_is_named_once_and_never_tried(
    caplog: pytest.LogCaptureFixture, url: str, token: str, named: str
) -> None:
    reporter = Reporter(url, token, agent="wrong")
    reporter.chat("c")
    reporter.close(0)
    said = [record.getMessage() for record in caplog.records]
    assert len([one for one in said if named in one]) == 1
    assert not any(token in one for one in said)
