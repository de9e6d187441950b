"""Commands are carried out at most once, fenced, in time, and always answered."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.client import CommandContext, Failed, Refused, Reporter
from ctxhealth.client.outbox import Outbox
from tests.client.conftest import Make
from tests.client.server import Server, eventually

_SECRET = "sk-" + "a1B2" * 8


@pytest.fixture
def agent(make: Make) -> Iterator[Reporter]:
    reporter = make(start=False)
    reporter.chat("c", window=1_000)
    yield reporter


def _start(reporter: Reporter) -> None:
    reporter.start()
    assert reporter.wait_connected()


def test_a_command_is_received_started_and_succeeds_with_its_result(
    server: Server, agent: Reporter
) -> None:
    seen: list[CommandContext] = []

    def stop(context: CommandContext) -> dict[str, Any]:
        seen.append(context)
        return {"before": 900, "after": 300, "backup": "b.json", "note": "mine"}

    agent.on("stop_turn", stop)
    _start(agent)
    server.command("k1", "stop_turn", args={"x": 1})
    end = server.ended("k1")
    assert server.states("k1") == ["received", "started", "succeeded"]
    assert (end["before"], end["after"], end["backup"]) == (900, 300, "b.json")
    assert end["detail"] == {"note": "mine"} and end["chat"] == "c"
    (context,) = seen
    assert (context.args, context.by, context.reason) == ({"x": 1}, "ann", "test")


def test_a_command_delivered_again_replays_its_result_and_is_not_done_again(
    server: Server, agent: Reporter
) -> None:
    done: list[str] = []
    agent.on("stop_turn", lambda context: done.append(context.id))
    _start(agent)
    server.command("k1", "stop_turn")
    first = server.ended("k1")
    server.drop()
    eventually(lambda: len(server.hellos) == 2 and len(server.live) == 1, "the next connection")
    server.command("k1", "stop_turn")
    eventually(lambda: server.states("k1").count("succeeded") == 2, "the replay")
    assert done == ["k1"]
    replay = server.events("command.progress")[-1]
    assert {**replay, "seq": 0} == {**first, "seq": 0}


def test_a_command_delivered_again_while_it_runs_does_not_start_a_second_run(
    server: Server, agent: Reporter
) -> None:
    runs: list[int] = []
    go_on = threading.Event()

    def slow(context: CommandContext) -> None:
        runs.append(1)
        assert go_on.wait(20)

    agent.on("stop_turn", slow)
    _start(agent)
    server.command("k1", "stop_turn")
    eventually(lambda: "started" in server.states("k1"))
    server.command("k1", "stop_turn")
    eventually(lambda: server.states("k1").count("started") == 2, "the state, again")
    go_on.set()
    assert server.ended("k1")["state"] == "succeeded"
    assert runs == [1]


def test_a_restart_keeps_the_result_of_a_command(
    server: Server, make: Make, tmp_path: Path
) -> None:
    done: list[str] = []
    first = make(agent="same", outbox=tmp_path / "outbox")
    first.on("stop_turn", lambda context: done.append(context.id))
    server.command("k1", "stop_turn")
    server.ended("k1")
    first.close()
    second = make(agent="same", outbox=tmp_path / "outbox")
    second.on("stop_turn", lambda context: done.append(context.id))
    assert second.wait_connected()
    eventually(lambda: len(server.live) == 1)
    server.command("k1", "stop_turn")
    eventually(lambda: server.states("k1").count("succeeded") == 2, "the replay")
    assert done == ["k1"]


def _begun_and_interrupted(path: Path) -> None:
    """What a process leaves behind that died between start and result."""
    outbox = Outbox(str(path))
    row = ("k1", "c", "stop_turn", "started", 1, b'{"type":"command.progress"}')
    sql = (
        "INSERT INTO commands(id, chat, kind, state, at_ms, result) VALUES (?, ?, ?, ?, ?, ?)",
        row,
    )
    outbox.append([], 1, also=[sql])
    outbox.close()


def test_a_process_that_died_between_start_and_result_reports_unknown_and_does_nothing(
    server: Server, make: Make, tmp_path: Path
) -> None:
    _begun_and_interrupted(tmp_path / "outbox")
    done: list[str] = []
    reporter = make(outbox=tmp_path / "outbox", start=False)
    reporter.on("stop_turn", lambda context: done.append(context.id))
    _start(reporter)
    assert server.ended("k1")["state"] == "unknown"
    server.command("k1", "stop_turn")
    eventually(lambda: server.states("k1") == ["unknown", "unknown"], "the replay")
    assert done == []


def test_started_is_on_the_disk_before_the_handler_acts(
    server: Server, make: Make, tmp_path: Path
) -> None:
    path = tmp_path / "outbox"
    reporter = make(outbox=path, start=False)
    copied: list[str] = []

    def handler(context: CommandContext) -> None:
        # As the disk stands at this moment, in a copy that another process could open.
        for end in ("", "-wal"):
            (tmp_path / f"copy{end}").write_bytes(Path(f"{path}{end}").read_bytes())
        copy = Outbox(str(tmp_path / "copy"))
        copied.extend(row[0] for row in copy.db.rows("SELECT state FROM commands"))
        copy.close()

    reporter.on("stop_turn", handler)
    _start(reporter)
    server.command("k1", "stop_turn")
    assert server.ended("k1")["state"] == "succeeded"
    assert copied == ["started"]


def test_a_kind_without_a_handler_is_refused_and_told_what_helps_instead(
    server: Server, agent: Reporter
) -> None:
    agent.on("compact_fallback", lambda context: None)
    _start(agent)
    server.command("k1", "clear_latch")
    end = server.ended("k1")
    assert (end["state"], end["reason"]) == ("refused", "unsupported")
    assert "compact_fallback" in end["detail"]


def test_a_kind_of_a_newer_server_is_refused_too(server: Server, agent: Reporter) -> None:
    _start(agent)
    server.command("k1", "teleport")
    assert server.ended("k1")["reason"] == "unsupported"


def test_ping_needs_no_handler(server: Server, agent: Reporter) -> None:
    _start(agent)
    server.command("k1", "ping", chat=None)
    assert server.ended("k1")["state"] == "succeeded"


@pytest.mark.parametrize(
    ("raised", "state", "reason"),
    [
        (Refused("holder_alive", "host b"), "refused", "holder_alive"),
        (Failed("no tokenizer"), "failed", "no tokenizer"),
        (ZeroDivisionError("oops " + _SECRET), "failed", "Zero"),
        (SystemExit(3), "failed", "SystemExit: 3"),
    ],
)
def test_what_a_handler_raises_becomes_the_answer(
    server: Server, agent: Reporter, raised: BaseException, state: str, reason: str
) -> None:
    def handler(context: CommandContext) -> None:
        raise raised

    agent.on("stop_turn", handler)
    _start(agent)
    server.command("k1", "stop_turn")
    end = server.ended("k1")
    assert end["state"] == state and end["reason"].startswith(reason)
    assert _SECRET not in json.dumps(end)


def test_a_coroutine_handler_runs_in_its_own_loop_or_in_the_hosts(
    server: Server, agent: Reporter
) -> None:
    loop = asyncio.new_event_loop()
    host = threading.Thread(target=loop.run_forever, daemon=True)
    host.start()
    threads: dict[str, threading.Thread] = {}

    async def own(context: CommandContext) -> dict[str, int]:
        await asyncio.sleep(0)
        threads[context.kind] = threading.current_thread()
        return {"after": 1}

    agent.on("stop_turn", own)
    agent.on("continue", own, loop=loop)
    _start(agent)
    server.command("k1", "stop_turn")
    assert server.ended("k1")["after"] == 1
    server.command("k2", "continue")
    assert server.ended("k2")["after"] == 1
    loop.call_soon_threadsafe(loop.stop)
    host.join(5)
    assert threads["continue"] is host and threads["stop_turn"] is not host


def _expected(reporter: Reporter, **fence: Any) -> dict[str, Any]:
    return {"epoch": reporter.epoch, **fence}


def test_a_command_for_an_earlier_epoch_is_stale(server: Server, agent: Reporter) -> None:
    done: list[str] = []
    agent.on("stop_turn", lambda context: done.append(context.id))
    _start(agent)
    server.command("k1", "stop_turn", expected={"epoch": "another"})
    end = server.ended("k1")
    assert (end["state"], end["reason"], done) == ("refused", "stale", [])
    server.command("k2", "stop_turn", expected=_expected(agent))
    assert server.ended("k2")["state"] == "succeeded"


def test_a_compaction_that_the_operator_had_not_seen_makes_a_command_stale(
    server: Server, agent: Reporter
) -> None:
    agent.on("compact_fallback", lambda context: {"before": 2, "after": 1})
    _start(agent)
    chat = agent.chat("c")
    attempt = chat.compaction_started()
    chat.compaction_finished(attempt, "done", before=10, after=5)
    assert agent.flush(10)
    server.command("k1", "compact_fallback", expected=_expected(agent, compaction=0))
    end = server.ended("k1")
    assert end["reason"] == "stale" and "1, expected 0" in end["detail"]
    server.command("k2", "compact_fallback", expected=_expected(agent, compaction=1))
    assert server.ended("k2")["state"] == "succeeded"


def test_a_compaction_that_ends_while_a_command_waits_makes_it_stale(
    server: Server, agent: Reporter
) -> None:
    agent.on("compact_fallback", lambda context: None, safe_point=True)
    _start(agent)
    chat = agent.chat("c")
    attempt = chat.compaction_started()
    assert agent.flush(10)
    server.command("k1", "compact_fallback", expected=_expected(agent, compaction=0))
    waiting = eventually(
        lambda: [e for e in server.events("command.progress") if e["state"] == "waiting"]
    )
    assert waiting[0]["reason"] == "compaction"
    chat.compaction_finished(attempt, "done", before=10, after=5)
    assert server.ended("k1")["reason"] == "stale"


def test_an_agent_that_restarted_without_memory_is_not_stale_for_ever(
    server: Server, agent: Reporter
) -> None:
    agent.on("compact_fallback", lambda context: {"before": 2, "after": 1})
    _start(agent)
    server.command("k1", "compact_fallback", expected=_expected(agent, compaction=7))
    assert server.ended("k1")["state"] == "succeeded"


def test_an_agent_without_memory_still_sees_a_compaction_that_the_operator_did_not(
    server: Server, agent: Reporter
) -> None:
    agent.on("compact_fallback", lambda context: None, safe_point=True)
    _start(agent)
    chat = agent.chat("c")
    attempt = chat.compaction_started()
    server.command("k1", "compact_fallback", expected=_expected(agent, compaction=7))
    eventually(lambda: "waiting" in server.states("k1"))
    chat.compaction_finished(attempt, "done", before=10, after=5)
    assert server.ended("k1")["reason"] == "stale"


def test_an_attempt_told_twice_counts_once_as_it_does_on_the_server(
    server: Server, agent: Reporter
) -> None:
    agent.on("compact_fallback", lambda context: None)
    _start(agent)
    chat = agent.chat("c")
    attempt = chat.compaction_started()
    chat.compaction_finished(attempt, "done")
    chat.compaction_finished(attempt, "done")
    assert agent.flush(10)
    server.command("k1", "compact_fallback", expected=_expected(agent, compaction=1))
    assert server.ended("k1")["state"] == "succeeded"


def test_compactions_are_counted_on_over_a_restart(
    server: Server, make: Make, tmp_path: Path
) -> None:
    first = make(agent="same", outbox=tmp_path / "outbox")
    for _ in range(3):
        first.chat("c").compaction_finished(first.chat("c").compaction_started(), "done")
    first.close()
    second = make(agent="same", outbox=tmp_path / "outbox", start=False)
    second.on("compact_fallback", lambda context: None)
    _start(second)
    eventually(lambda: len(server.live) == 1)
    server.command("k1", "compact_fallback", expected=_expected(second, compaction=2))
    assert server.ended("k1")["reason"] == "stale"
    server.command("k2", "compact_fallback", expected=_expected(second, compaction=3))
    assert server.ended("k2")["state"] == "succeeded"


def test_a_latch_that_is_already_cleared_makes_a_command_stale(
    server: Server, agent: Reporter
) -> None:
    agent.on("clear_latch", lambda context: None)
    _start(agent)
    chat = agent.chat("c")
    latch = chat.latch_set("L1", kind="structural")
    chat.latch_cleared(latch, "turn_end")
    server.command("k1", "clear_latch", args={"latch": "L1"}, expected={"latch": "L1"})
    assert server.ended("k1")["reason"] == "stale"
    chat.latch_set("L1", kind="structural")
    server.command("k2", "clear_latch", args={"latch": "L1"}, expected={"latch": "L1"})
    assert server.ended("k2")["state"] == "succeeded"


def test_the_hosts_own_fence_wins(server: Server, agent: Reporter) -> None:
    agent.on("compact_fallback", lambda context: None)
    agent.set_fence(lambda chat: {"compaction": 41})
    _start(agent)
    server.command("k1", "compact_fallback", expected={"compaction": 42})
    assert server.ended("k1")["reason"] == "stale"
    server.command("k2", "compact_fallback", expected={"compaction": 41})
    assert server.ended("k2")["state"] == "succeeded"


def test_a_cleared_latch_is_said_in_the_log_before_the_command_succeeds(
    server: Server, agent: Reporter
) -> None:
    agent.on("clear_latch", lambda context: {})
    _start(agent)
    server.command("k1", "clear_latch", args={"latch": "L9"})
    server.ended("k1")
    kinds = [(e["type"], e.get("state") or e.get("how")) for e in server.stream()]
    cleared = kinds.index(("latch.cleared", "operator"))
    assert kinds.index(("command.progress", "succeeded")) > cleared
    assert server.events("latch.cleared")[0]["command"] == "k1"


def test_a_handler_that_says_it_itself_is_not_repeated(server: Server, agent: Reporter) -> None:
    def clear(context: CommandContext) -> None:
        agent.chat("c").latch_cleared("L9", "operator", context.id)

    def compact(context: CommandContext) -> dict[str, int]:
        agent.chat("c").compaction_finished(context.id, "fell_back", before=9, after=3)
        return {"before": 9, "after": 3}

    agent.on("clear_latch", clear)
    agent.on("compact_fallback", compact)
    _start(agent)
    server.command("k1", "clear_latch", args={"latch": "L9"})
    server.ended("k1")
    server.command("k2", "compact_fallback")
    server.ended("k2")
    assert len(server.events("latch.cleared")) == 1
    assert len(server.events("compaction.finished")) == 1


def test_an_own_fallback_that_only_returns_its_numbers_still_ends_with_compaction_finished(
    server: Server, agent: Reporter
) -> None:
    agent.on("compact_fallback", lambda context: {"before": 9, "after": 3, "backup": "x"})
    _start(agent)
    server.command("k1", "compact_fallback")
    server.ended("k1")
    (finished,) = server.events("compaction.finished")
    assert (finished["trigger"], finished["before"], finished["after"]) == ("forced", 9, 3)


def test_a_command_waits_for_the_model_call_to_end(server: Server, agent: Reporter) -> None:
    agent.on("compact_fallback", lambda context: None, safe_point=True)
    _start(agent)
    chat = agent.chat("c")
    request = chat.request_sent()
    server.command("k1", "compact_fallback")
    eventually(lambda: "waiting" in server.states("k1"))
    assert "started" not in server.states("k1")
    chat.model_replied(request)
    assert server.ended("k1")["state"] == "succeeded"


def test_a_waiting_command_can_be_cancelled_and_a_started_one_cannot(
    server: Server, agent: Reporter
) -> None:
    go_on = threading.Event()
    agent.on("compact_fallback", lambda context: None, safe_point=True)
    agent.on("stop_turn", lambda context: go_on.wait(20) and None)
    _start(agent)
    request = agent.chat("c").request_sent()
    server.command("k1", "compact_fallback")
    eventually(lambda: "waiting" in server.states("k1"))
    server.send({"type": "cancel", "id": "k1"})
    assert server.ended("k1")["state"] == "cancelled"
    agent.chat("c").model_replied(request)
    server.command("k2", "stop_turn")
    eventually(lambda: "started" in server.states("k2"))
    server.send({"type": "cancel", "id": "k2"})
    go_on.set()
    assert server.ended("k2")["state"] == "succeeded"


def test_a_command_whose_lease_runs_out_while_it_waits_expires(
    server: Server, agent: Reporter
) -> None:
    done: list[str] = []
    agent.on("compact_fallback", lambda context: done.append(context.id), safe_point=True)
    _start(agent)
    agent.chat("c").request_sent()
    server.command("k1", "compact_fallback", lease_s=0.3)
    assert server.ended("k1")["state"] == "expired"
    assert done == []


def test_a_command_with_no_time_left_to_deliver_expires(server: Server, agent: Reporter) -> None:
    agent.on("stop_turn", lambda context: None)
    _start(agent)
    server.command("k1", "stop_turn", deliver_ms=0)
    assert server.ended("k1")["state"] == "expired"


def test_a_second_command_for_the_same_chat_is_refused_while_one_is_open(
    server: Server, agent: Reporter
) -> None:
    go_on = threading.Event()
    agent.on("stop_turn", lambda context: go_on.wait(20) and None)
    agent.on("continue", lambda context: None)
    agent.chat("d")
    _start(agent)
    server.command("k1", "stop_turn")
    eventually(lambda: "started" in server.states("k1"))
    server.command("k2", "continue")
    end = server.ended("k2")
    assert (end["reason"], "k1" in end["detail"]) == ("busy", True)
    server.command("k3", "continue", chat="d")
    assert server.ended("k3")["state"] == "succeeded"
    go_on.set()
    assert server.ended("k1")["state"] == "succeeded"


def test_a_handler_may_wait_itself_and_start_when_it_is_ready(
    server: Server, agent: Reporter
) -> None:
    ready = threading.Event()

    def handler(context: CommandContext) -> dict[str, int]:
        context.wait_until(ready.is_set, "the operator's coffee", poll_s=0.01)
        context.start()
        assert 0 < context.remaining_ms <= 600_000
        return {"after": 5}

    agent.on("compact_summarize", handler, manual_start=True)
    _start(agent)
    server.command("k1", "compact_summarize")
    eventually(lambda: "waiting" in server.states("k1"))
    ready.set()
    assert server.ended("k1")["after"] == 5
    assert server.states("k1") == ["received", "waiting", "started", "succeeded"]


def test_a_handler_of_one_chat_does_not_serve_another(server: Server, agent: Reporter) -> None:
    agent.on("stop_turn", lambda context: {"after": 1}, chat="c")
    agent.chat("d")
    _start(agent)
    server.command("k1", "stop_turn")
    assert server.ended("k1")["state"] == "succeeded"
    server.command("k2", "stop_turn", chat="d")
    assert server.ended("k2")["reason"] == "unsupported"


def test_every_progress_event_of_a_command_lies_behind_what_was_reported_before_it(
    server: Server, agent: Reporter
) -> None:
    def handler(context: CommandContext) -> None:
        for number in range(200):
            agent.chat("c").note(f"note {number}")

    agent.on("stop_turn", handler)
    _start(agent)
    server.command("k1", "stop_turn")
    server.ended("k1")
    kinds = [event["type"] for event in server.stream()]
    assert kinds[-1] == "command.progress" and kinds.count("note") == 200


def test_an_unknown_kind_cannot_be_registered(agent: Reporter) -> None:
    with pytest.raises(ValueError, match="teleport"):
        agent.on("teleport", lambda context: None)


def test_an_unknown_refusal_cannot_be_raised() -> None:
    with pytest.raises(ValueError, match="tired"):
        Refused("tired")
