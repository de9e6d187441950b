"""Events arrive once, in order, without holes: over a real socket, with faults."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.server import ServerConnection

from ctxhealth.client import Reporter, connection, limits
from ctxhealth.client.outbox import Outbox
from tests.client.conftest import Make
from tests.client.server import TOKEN, Server, cut, eventually


def _texts(server: Server) -> list[str]:
    return [event["text"] for event in server.events("note")]


def _whole(server: Server) -> None:
    stream = server.stream()
    assert [event["seq"] for event in stream] == list(range(1, len(stream) + 1))


def test_events_arrive_in_order_and_flush_waits_for_their_ack(server: Server, make: Make) -> None:
    reporter = make()
    for number in range(1_000):
        reporter.note(str(number))
    assert reporter.flush(10)
    assert _texts(server) == [str(number) for number in range(1_000)]
    _whole(server)


def test_the_token_travels_in_the_header_and_neither_origin_nor_cookie_does(
    server: Server, make: Make
) -> None:
    make().wait_connected()
    headers = server.headers[0]
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert "origin" not in headers and "cookie" not in headers


def test_hello_names_agent_epoch_seqs_and_capabilities(server: Server, make: Make) -> None:
    reporter = make(agent="billy", runtime="py", runtime_version="3", start=False)
    reporter.on("clear_latch", lambda context: None)
    reporter.start()
    assert reporter.wait_connected()
    hello = server.hellos[0]
    assert (hello["agent"], hello["runtime"], hello["protocols"]) == ("billy", "py", [1])
    assert hello["epoch"] == reporter.epoch
    assert (hello["next_seq"], hello["first_unacked"], hello["acked"]) == (1, 1, 0)
    assert hello["caps"] == {
        "commands": ["clear_latch", "ping"],
        "fallback": "none",
        "text": "excerpt",
    }


def test_a_handler_registered_later_is_told_in_a_new_hello(server: Server, make: Make) -> None:
    reporter = make()
    assert reporter.wait_connected()
    reporter.on("stop_turn", lambda context: None)
    eventually(lambda: len(server.hellos) > 1, "a second hello")
    assert "stop_turn" in server.hellos[-1]["caps"]["commands"]


def test_events_called_while_the_server_is_down_arrive_when_it_is_up(
    server: Server, make: Make
) -> None:
    server.stop()
    reporter = make()
    for number in range(50):
        reporter.note(str(number))
    assert not reporter.flush(0.1)
    server.start()
    assert reporter.flush(10)
    assert _texts(server) == [str(number) for number in range(50)]


def test_a_connection_lost_after_storing_and_before_the_ack_stores_nothing_twice(
    server: Server, make: Make
) -> None:
    lost: list[int] = []

    def keep_and_cut(server: Server, ws: ServerConnection, frame: dict[str, Any]) -> bool:
        if len(lost) >= 5:
            return True
        lost.append(1)
        stream = server.streams.setdefault(frame["epoch"], [])
        for event in frame["events"]:
            if event["seq"] == len(stream) + 1:
                stream.append(event)
        cut(ws)
        return False

    server.before_events = keep_and_cut
    server.limits["inflight"] = 40
    reporter = make()
    for number in range(300):
        reporter.note(str(number))
    assert reporter.flush(10)
    assert _texts(server) == [str(number) for number in range(300)]
    assert len(lost) == 5 and server.conflicts == []
    _whole(server)


def test_a_frame_lost_on_the_way_is_sent_again_after_resend(server: Server, make: Make) -> None:
    seen: list[int] = []

    def lose_the_second(server: Server, ws: ServerConnection, frame: dict[str, Any]) -> bool:
        seen.append(frame["events"][0]["seq"])
        return len(seen) != 2

    server.before_events = lose_the_second
    server.limits["batch"] = 10
    reporter = make()
    for number in range(100):
        reporter.note(str(number))
    assert reporter.flush(10)
    assert server.resends >= 1
    assert _texts(server) == [str(number) for number in range(100)]


def test_busy_keeps_everything_and_sends_it_again_later(server: Server, make: Make) -> None:
    frames: list[float] = []

    def busy_once(server: Server, ws: ServerConnection, frame: dict[str, Any]) -> bool:
        frames.append(time.monotonic())
        if len(frames) > 1:
            return True
        ws.send(json.dumps({"type": "busy", "retry_ms": 300, "reason": "disk full"}))
        return False

    server.before_events = busy_once
    reporter = make()
    reporter.note("kept")
    assert reporter.flush(10)
    assert _texts(server) == ["kept"]
    assert frames[1] - frames[0] >= 0.25
    assert len(server.hellos) == 1


def test_no_more_events_are_under_way_than_the_server_allows(server: Server, make: Make) -> None:
    server.limits |= {"inflight": 20, "batch": 10}
    held: list[int] = []

    def hold(server: Server, ws: ServerConnection, frame: dict[str, Any]) -> bool:
        held.extend(event["seq"] for event in frame["events"])
        return False

    server.before_events = hold
    reporter = make()
    for number in range(100):
        reporter.note(str(number))
    eventually(lambda: len(held) >= 20, "the first credits used")
    eventually(lambda: reporter.status()["queued"] == 0, "the queue emptied")
    assert held == list(range(1, 21))
    server.before_events = None
    server.drop()
    assert reporter.flush(10)
    _whole(server)


def test_the_stated_rate_is_kept(server: Server, make: Make) -> None:
    server.limits |= {"rate": 200}
    reporter = make()
    assert reporter.wait_connected()
    started = time.monotonic()
    for number in range(400):
        reporter.note(str(number))
    assert reporter.flush(10)
    # 200 at once from a full allowance, 200 more at 200 a second.
    assert time.monotonic() - started >= 0.9


def test_a_server_restored_from_a_backup_is_fed_again(
    server: Server, make: Make, tmp_path: Path
) -> None:
    reporter = make(outbox=tmp_path / "outbox")
    for number in range(200):
        reporter.note(str(number))
    assert reporter.flush(10)
    server.stop()
    stream = server.stream()
    server.streams[reporter.epoch or ""] = stream[:37]
    server.incarnation = "life-2"
    server.start()
    reporter.note("after")
    assert reporter.flush(10)
    assert _texts(server) == [*(str(number) for number in range(200)), "after"]
    assert server.streams[reporter.epoch or ""][:200] == stream
    _whole(server)


def test_flush_waits_again_for_what_a_restored_server_lost(
    server: Server, make: Make, tmp_path: Path
) -> None:
    reporter = make(outbox=tmp_path / "outbox")
    for number in range(500):
        reporter.note(str(number))
    assert reporter.flush(10)
    server.stop()
    server.streams[reporter.epoch or ""] = server.stream()[:3]
    server.limits["inflight"] = 10
    server.start()
    eventually(lambda: reporter.connected and reporter.status()["connections"] == 2)
    assert reporter.flush(10)
    assert len(_texts(server)) == 500


def test_what_a_rewound_server_lost_and_nobody_holds_any_more_becomes_gaps(
    server: Server, make: Make, tmp_path: Path
) -> None:
    reporter = make(outbox=tmp_path / "outbox", replay_bytes=4_000)
    for number in range(200):
        reporter.note(str(number))
        if number % 20 == 0:
            assert reporter.flush(10)
    assert reporter.flush(10)
    server.stop()
    server.streams[reporter.epoch or ""] = server.stream()[:10]
    server.start()
    reporter.note("after")
    assert reporter.flush(10)
    _whole(server)
    gaps = server.events("gap")
    assert gaps and {gap["reason"] for gap in gaps} == {"restore"}
    assert sum(gap["count"] for gap in gaps) + len(_texts(server)) == 201
    assert _texts(server)[-1] == "after"


def test_a_restarted_agent_continues_its_epoch_and_its_numbers(
    server: Server, make: Make, tmp_path: Path
) -> None:
    first = make(agent="same", outbox=tmp_path / "outbox")
    first.note("one")
    first.close()
    second = make(agent="same", outbox=tmp_path / "outbox")
    second.note("two")
    assert second.flush(10)
    assert _texts(server) == ["one", "two"]
    _whole(server)
    assert server.hellos[-1]["acked"] == 1


def test_an_agent_whose_outbox_lost_its_tail_loses_no_new_event(
    server: Server, make: Make, tmp_path: Path
) -> None:
    first = make(agent="same", outbox=tmp_path / "outbox")
    first.note("one")
    assert first.flush(10)
    for end in ("", "-wal"):
        source = tmp_path / f"outbox{end}"
        if source.exists():
            (tmp_path / f"old{end}").write_bytes(source.read_bytes())
    first.note("two")
    first.note("three")
    first.close()
    second = make(agent="same", outbox=tmp_path / "old")
    second.note("four")
    second.note("five")
    assert second.flush(10)
    assert _texts(server) == ["one", "two", "three", "four", "five"]
    assert server.conflicts == []
    _whole(server)


def test_rubbish_and_unknown_frames_from_the_server_are_ignored(server: Server, make: Make) -> None:
    reporter = make()
    assert reporter.wait_connected()
    eventually(lambda: server.live)
    ws = server.live[-1]
    rubbish = ["{", "[1]", "null", '"x"', "\U0001f600", "[" * 5_000, '{"type":"dance"}']
    for raw in rubbish:
        ws.send(raw)
    ws.send(b"\x00\xff\x00")
    for frame in (
        {"type": "ack"},
        {"type": "ack", "epoch": "other", "upto": 99},
        {"type": "ack", "epoch": reporter.epoch, "upto": 10**9},
        {"type": "ack", "epoch": reporter.epoch, "upto": "1"},
        {"type": "resend", "epoch": reporter.epoch, "from": 0},
        {"type": "resend", "epoch": reporter.epoch, "from": 10**9},
        {"type": "busy", "retry_ms": "soon"},
        {"type": "hb", "acked": -5},
        {"type": "cancel"},
        {"type": "command"},
    ):
        ws.send(json.dumps(frame))
    reporter.note("still here")
    assert reporter.flush(10)
    assert _texts(server) == ["still here"]
    assert reporter.status()["connections"] == 1


def test_heartbeats_say_the_head_of_the_stream(server: Server, make: Make) -> None:
    server.heartbeat_s = 1
    reporter = make()
    reporter.note("x")
    beat = eventually(lambda: [b for b in server.beats if b.get("seq_head") == 1], "a heartbeat")[0]
    assert abs(beat["now"] - time.time() * 1000) < 5_000


def test_a_half_open_connection_is_given_up_and_replaced(
    server: Server, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.heartbeat_s = 1
    monkeypatch.setattr(connection, "SILENT_BEATS", 0.5)
    server.mute = True
    reporter = make()
    reporter.note("x")
    assert reporter.wait_connected()
    eventually(lambda: len(server.hellos) > 1, "a second connection")
    server.mute = False
    assert reporter.flush(10)
    assert _texts(server) == ["x"]


def test_a_server_that_answers_beats_but_never_acks_is_left(
    server: Server, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_ACK_S", 0.5)
    server.before_events = lambda server, ws, frame: len(server.hellos) > 1
    reporter = make()
    reporter.note("x")
    assert reporter.flush(10)
    assert len(server.hellos) > 1


def test_bye_is_said_on_close(server: Server, make: Make) -> None:
    reporter = make()
    reporter.note("last words")
    assert reporter.wait_connected()
    reporter.close()
    eventually(lambda: server.byes, "bye")
    assert _texts(server) == ["last words"]


@pytest.mark.parametrize("code", [1012, 1013, 1011, 4429])
def test_the_agent_comes_back_after_a_passing_close_code(
    server: Server, make: Make, code: int
) -> None:
    reporter = make()
    reporter.note("one")
    assert reporter.flush(10)
    server.drop(code, "for now")
    reporter.note("two")
    assert reporter.flush(10)
    assert _texts(server) == ["one", "two"]


@pytest.mark.parametrize("code", [4401, 4403, 4406])
def test_a_refusal_only_a_person_can_heal_is_said_once_and_not_hurried(
    server: Server, make: Make, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(ws: ServerConnection, hello: dict[str, Any]) -> bool:
        ws.close(code, "no")
        return False

    server.on_hello = refuse
    reporter = make()
    eventually(lambda: reporter.status()["state"] == "waiting", "the pause")
    assert reporter.status()["last_error"] == f"closed {code} no"
    assert len(server.hellos) == 1
    said = [record for record in caplog.records if f"closed {code} no" in record.getMessage()]
    assert len(said) == 1
    server.on_hello = None
    reporter.configure(server.url, TOKEN)
    assert reporter.wait_connected()


def test_a_replaced_agent_stops_until_asked(server: Server, make: Make) -> None:
    reporter = make()
    assert reporter.wait_connected()
    eventually(lambda: server.live)
    server.drop(4408, "replaced")
    eventually(lambda: reporter.status()["state"] == "replaced", "the stop")
    assert len(server.hellos) == 1
    reporter.reconnect()
    assert reporter.wait_connected()


def test_a_replaced_agent_told_to_reconnects(server: Server, make: Make) -> None:
    reporter = make(on_replaced="reconnect")
    assert reporter.wait_connected()
    eventually(lambda: server.live)
    server.drop(4408, "replaced")
    eventually(lambda: len(server.hellos) > 1, "a second hello")


def test_a_stream_that_cannot_be_resumed_twice_goes_on_as_a_new_one(
    server: Server, make: Make
) -> None:
    refused: list[str] = []

    def no_resume(ws: ServerConnection, hello: dict[str, Any]) -> bool:
        if len(refused) < 2:
            refused.append(hello["epoch"])
            ws.close(4409, "hole")
            return False
        return True

    server.on_hello = no_resume
    reporter = make()
    reporter.note("one")
    assert eventually(lambda: len(refused) == 2, "two refusals")
    reporter.note("two")
    eventually(lambda: _texts(server)[-1:] == ["two"], "the new stream")
    first, *rest = server.stream()
    assert first["level"] == "warning" and refused[0] in first["text"]
    assert [event["text"] for event in rest] == ["one", "two"]
    assert reporter.epoch != refused[0]
    _whole(server)


@pytest.mark.parametrize("code", [4400, 4413])
def test_an_event_that_kills_the_connection_is_found_and_left_out(
    server: Server, make: Make, code: int
) -> None:
    def choke(server: Server, ws: ServerConnection, frame: dict[str, Any]) -> bool:
        if any(event.get("text") == "poison" for event in frame["events"]):
            ws.close(code, "choked")
            return False
        return True

    server.before_events = choke
    reporter = make()
    texts = [f"before {number}" for number in range(5)] + ["poison"] + ["after"] * 5
    for text in texts:
        reporter.note(text)
    assert reporter.flush(15)
    assert _texts(server) == [text for text in texts if text != "poison"]
    (gap,) = server.events("gap")
    assert gap["count"] == 1 and "choked" in gap["reason"]
    _whole(server)


def test_rejected_events_are_final_and_counted(
    server: Server, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = make()
    reporter.event("note", text="fine")
    reporter.event("message.added", chat="c", id="m", role="wizard", kind="text")
    reporter.note("fine too")
    assert reporter.flush(10)
    assert reporter.status()["rejected"] == 1
    assert "wizard" in caplog.text
    assert server.duplicates == 0
    _whole(server)


def test_many_threads_may_report_at_once(server: Server, make: Make) -> None:
    reporter = make()

    def work(name: str) -> None:
        chat = reporter.chat(name)
        for number in range(200):
            chat.note(str(number))

    threads = [threading.Thread(target=work, args=(f"chat-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reporter.flush(10)
    for number in range(8):
        notes = [e["text"] for e in server.events("note") if e["chat"] == f"chat-{number}"]
        assert notes == [str(n) for n in range(200)]
    _whole(server)


async def _report_from_asyncio(reporter: Reporter) -> bool:
    chat = reporter.chat("loop")
    for number in range(20):
        chat.note(str(number))
    return await reporter.aflush(10)


@pytest.mark.asyncio
async def test_it_works_from_asyncio(server: Server, make: Make) -> None:
    assert await _report_from_asyncio(make())
    assert len(_texts(server)) == 20


def test_a_second_process_cannot_number_the_same_stream(
    server: Server, make: Make, tmp_path: Path
) -> None:
    held = Outbox(str(tmp_path / "outbox"))
    try:
        reporter = make(outbox=tmp_path / "outbox")
        reporter.note("from memory")
        assert reporter.flush(10)
        assert reporter.epoch != held.epoch
    finally:
        held.close()


def test_limits_that_are_missing_or_absurd_keep_the_protocols_own() -> None:
    assert limits.Limits.stated(None) == limits.Limits()
    assert limits.Limits.stated({"batch": 0, "rate": "fast", "inflight": 7}).inflight == 7
    assert limits.Limits.stated({"batch": 0}).batch == 100
