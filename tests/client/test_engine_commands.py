"""The deterministic commands on a host's real history: backup, change, receipt, undo."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.client import Reporter, fallback
from ctxhealth.client.histories import snapshot_of
from ctxhealth.engine import Bulk, History, Item, Topic, plan_fallback
from tests.client.conftest import Make
from tests.client.server import Server


def _turn(number: int) -> Topic:
    call = (f"k{number}",)
    return Topic(
        f"t{number}",
        (
            Item(f"u{number}", "user", "text", 100, f"question {number} " * 20),
            Item(f"c{number}", "assistant", "tool_call", 20, "ls", name="bash", calls=call),
            Item(f"r{number}", "tool", "tool_result", 600, "file " * 600, answers=call),
            Item(f"a{number}", "assistant", "text", 200, f"answer {number} " * 60),
        ),
        f"Topic {number}",
    )


def _history() -> History:
    last = Topic("current", (Item("ask", "user", "text", 50, "and now?"),))
    return History(500, 300, 0, (), tuple(_turn(n) for n in range(12)), last)


class Host:
    """An agent with one chat, its history in memory."""

    def __init__(self, make: Make, folder: Path, history: History, **facts: Any) -> None:
        self.history = history
        self.folder = folder
        self.reporter: Reporter = make(start=False)
        self.chat = self.reporter.chat("c/1", **facts)
        self.reporter.use_engine(
            self.chat,
            get_history=lambda: self.history,
            set_history=self._set,
            backup_dir=folder,
            lock=threading.Lock(),
        )
        self.reporter.start()
        assert self.reporter.wait_connected()

    def _set(self, history: History) -> None:
        self.history = history


@pytest.fixture
def host(make: Make, tmp_path: Path) -> Host:
    return Host(make, tmp_path / "backups", _history(), window=10_000, history_limit=8_000)


def test_a_fallback_shrinks_the_real_history_and_leaves_its_receipt(
    server: Server, host: Host
) -> None:
    before = host.history
    server.command("k1", "compact_fallback", chat="c/1")
    end = server.ended("k1")
    assert end["state"] == "succeeded"
    assert end["before"] == before.total("history") and end["after"] <= 6_400
    assert host.history.total("history") == end["after"]
    (finished,) = server.events("compaction.finished")
    assert (finished["trigger"], finished["reported"], finished["lossy"]) == (
        "forced",
        "fell_back",
        True,
    )
    assert finished["scope"] == "history" and finished["before"] == end["before"]
    assert finished["steps"] and all(step["calls"] == 0 for step in finished["steps"])
    (started,) = server.events("compaction.started")
    assert started["input_hash"] == before.revision == finished["input_hash"]
    (snapshot,) = server.events("history.snapshot")
    assert snapshot["history"] == end["after"] and snapshot["revision"] == finished["revision"]


def test_the_backup_is_written_before_the_change_and_undoes_it(
    server: Server, host: Host, make: Make
) -> None:
    before = host.history
    server.command("k1", "compact_fallback", chat="c/1")
    backup = Path(server.ended("k1")["backup"])
    assert json.loads(backup.read_text())["history"] == before.to_dict()
    assert backup.stat().st_mode & 0o077 == 0
    assert backup.resolve().is_relative_to(host.folder.resolve())
    server.command("k2", "restore_backup", chat="c/1", args={"command": "k1"})
    end = server.ended("k2")
    assert end["state"] == "succeeded" and end["after"] == before.total("history")
    assert host.history == before
    assert Path(end["backup"]).exists()


def test_the_backup_is_synced_to_the_disk_before_the_host_is_given_the_new_history(
    server: Server, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync, take = os.fsync, host._set

    def synced(fd: int) -> None:
        order.append("sync")
        sync(fd)

    def taken(history: History) -> None:
        order.append("taken")
        take(history)

    monkeypatch.setattr(os, "fsync", synced)
    host.reporter.use_engine(
        host.chat, get_history=lambda: host.history, set_history=taken, backup_dir=host.folder
    )
    server.command("k1", "compact_fallback", chat="c/1")
    assert server.ended("k1")["state"] == "succeeded"
    assert order == ["sync", "taken"]


def test_an_asked_target_and_kept_turns_are_followed(server: Server, host: Host) -> None:
    server.command("k1", "compact_fallback", chat="c/1", args={"target": 5_000, "keep_turns": 3})
    end = server.ended("k1")
    assert end["after"] <= 5_000 and end["detail"]["target"] == 5_000
    assert [topic.id for topic in host.history.topics][-3:] == ["t9", "t10", "t11"]


def test_a_history_within_its_target_is_left_alone_and_the_command_says_so(
    server: Server, make: Make, tmp_path: Path
) -> None:
    small = History(500, 300, 0, (), (_turn(1),))
    host = Host(make, tmp_path, small, window=100_000)
    server.command("k1", "compact_fallback", chat="c/1")
    end = server.ended("k1")
    assert end["state"] == "failed" and "within the target" in end["reason"]
    assert host.history is small and not list(tmp_path.glob("**/*.json"))
    assert server.events("compaction.finished")[0]["reported"] == "not_needed"


def test_without_any_known_limit_a_target_is_asked_for(
    server: Server, make: Make, tmp_path: Path
) -> None:
    Host(make, tmp_path, _history())
    server.command("k1", "compact_fallback", chat="c/1")
    end = server.ended("k1")
    assert (end["state"], end["reason"]) == ("refused", "unsupported")
    server.command("k2", "compact_fallback", chat="c/1", args={"target": 6_000})
    assert server.ended("k2")["state"] == "succeeded"


def test_a_host_that_fails_to_take_the_new_history_gets_an_honest_end(
    server: Server, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(history: History) -> None:
        raise OSError("chat file is read-only")

    before = host.history
    monkeypatch.setattr(host, "_set", refuse)
    host.reporter.use_engine(
        host.chat, get_history=lambda: host.history, set_history=refuse, backup_dir=host.folder
    )
    server.command("k1", "compact_fallback", chat="c/1")
    end = server.ended("k1")
    assert end["state"] == "failed" and "read-only" in end["reason"]
    assert host.history is before
    assert server.events("compaction.finished")[0]["reported"] == "failed"


def test_a_backup_that_cannot_be_written_stops_everything(
    server: Server, make: Make, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    host = Host(make, tmp_path / "taken", _history(), window=10_000)
    before = host.history
    server.command("k1", "compact_fallback", chat="c/1")
    assert server.ended("k1")["state"] == "failed"
    assert host.history is before


def test_repair_closes_an_open_call_and_says_what_it_did(
    server: Server, make: Make, tmp_path: Path
) -> None:
    broken = Topic("t", (Item("c", "assistant", "tool_call", 5, "ls", calls=("k",)),))
    host = Host(make, tmp_path, History(0, 0, 0, (), (broken, _turn(1))), window=10_000)
    server.command("k1", "repair_pairs", chat="c/1")
    end = server.ended("k1")
    assert end["detail"]["closed"] == ["k"] and Path(end["backup"]).exists()
    answers = [answer for item in host.history.sent_items() for answer in item.answers]
    assert "k" in answers
    server.command("k2", "repair_pairs", chat="c/1")
    assert "no broken pair" in server.ended("k2")["reason"]


def test_a_backup_of_an_unknown_command_or_an_altered_one_is_refused(
    server: Server, host: Host
) -> None:
    for number, command in enumerate(["k9", "../../etc/passwd", ""]):
        server.command(f"r{number}", "restore_backup", chat="c/1", args={"command": command})
        assert server.ended(f"r{number}")["state"] == "failed"
    server.command("k1", "compact_fallback", chat="c/1")
    backup = Path(server.ended("k1")["backup"])
    backup.write_text(backup.read_text().replace("question", "quest"))
    after = host.history
    server.command("r9", "restore_backup", chat="c/1", args={"command": "k1"})
    assert "altered" in server.ended("r9")["reason"] and host.history is after


def test_snapshot_reports_the_structure_now(server: Server, host: Host) -> None:
    server.command("k1", "snapshot", chat="c/1")
    assert server.ended("k1")["state"] == "succeeded"
    (snapshot,) = server.events("history.snapshot")
    assert len(snapshot["topics"]) == 12 and snapshot["current"] == {"tokens": 50, "messages": 1}
    assert [item["id"] for item in snapshot["order"]][-1] == "ask"


def test_one_registration_may_serve_every_chat(server: Server, make: Make, tmp_path: Path) -> None:
    histories = {"c": _history(), "d": _history()}
    reporter = make(start=False)
    reporter.use_engine(
        get_history=histories.__getitem__, set_history=histories.__setitem__, backup_dir=tmp_path
    )
    for chat in histories:
        reporter.chat(chat, window=8_000)
    reporter.start()
    assert reporter.wait_connected()
    assert server.hellos[0]["caps"]["fallback"] == "engine"
    server.command("k1", "compact_fallback", chat="d")
    assert server.ended("k1")["state"] == "succeeded"
    assert histories["c"] == _history() and histories["d"] != _history()


def test_an_own_handler_makes_the_preview_the_agents_own(make: Make, server: Server) -> None:
    reporter = make(start=False)
    reporter.on("compact_fallback", lambda context: None)
    reporter.start()
    assert reporter.wait_connected()
    assert server.hellos[0]["caps"]["fallback"] == "own"


@pytest.mark.parametrize(
    ("facts", "target", "scope"),
    [
        ({"window": 10_000}, int(0.8 * 9_500), "prompt"),
        ({"window": 10_000, "reserve": 2_000}, int(0.8 * 8_000), "prompt"),
        ({"window": 200_000, "max_input": 50_000}, 40_000, "prompt"),
        ({"window": 200_000, "history_limit": 10_000}, 8_000, "history"),
        ({"window": 10_000, "trigger": {"ratio": 0.5}}, 4_000, "prompt"),
        ({"trigger": {"tokens": 6_000, "scope": "history"}}, 4_800, "history"),
    ],
)
def test_the_target_is_four_fifths_of_the_smallest_limit(
    facts: dict[str, Any], target: int, scope: str
) -> None:
    assert fallback.target_of(facts, _history(), None) == (target, scope)


def test_the_plan_is_the_one_a_preview_makes(server: Server, host: Host) -> None:
    target, scope = fallback.target_of(host.chat.facts, host.history, None)
    plan = plan_fallback(host.history, target=target, scope=scope)  # type: ignore[arg-type]
    server.command("k1", "compact_fallback", chat="c/1")
    assert server.ended("k1")["after"] == plan.after
    assert host.history == plan.result


def test_a_snapshot_names_blank_bulks_items_and_unread_results() -> None:
    bulk = Bulk("b", 0, "", 1, (Item("x", "user", "text", 7, "hi"),))
    unread = Topic("t", (Item("r", "tool", "tool_result", 3, "out", answers=("k",), read=False),))
    order = snapshot_of(History(1, 2, 3, (bulk,), (unread,)))["order"]
    assert order[0] == {"id": "x", "role": "user", "kind": "text", "tokens": 7, "in": "b"}
    assert order[1]["read"] is False and order[1]["answers"] == ["k"]
