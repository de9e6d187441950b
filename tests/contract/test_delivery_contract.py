"""The twenty lines of the delivery contract, each with a test that names it.

Against a real server in its own process over real websockets. Line 14 (heartbeats and their
deadlines) is in tests/ingest/test_keeper.py where the clock is an argument; line 20's page side
is in tests/browser.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from tests.contract.agent import RawAgent
from tests.contract.conftest import World
from tests.store.streams import START, event, message, opened, session

Lock = Callable[[], Callable[[], None]]


def until(check: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Poll until ``check`` is true; its value."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


def progress(seq: int, command: str, state: str, **fields: Any) -> dict[str, Any]:
    return event(seq, "command.progress", "c1", command=command, state=state, **fields)


# Line 1: a stream is (agent, epoch); the token binds the agent on the server.


def test_line_01_a_stream_is_agent_and_epoch(world: World) -> None:
    for epoch in ("first", "second"):
        with world.agent() as agent:
            assert agent.hello(agent="line01", epoch=epoch)["acked"] == 0
            agent.events([opened(1, f"chat-{epoch}"), message(2, f"chat-{epoch}")])
            agent.acked(2)
    assert world.seqs("line01", "first") == [1, 2]
    assert world.seqs("line01", "second") == [1, 2]


def test_line_01_a_bad_token_is_told_so_and_a_browser_is_refused(world: World) -> None:
    world.tokens["bad"] = world.tokens["agents"][:-4] + "AAAA"
    with world.agent("bad") as agent:
        assert agent.closed()[0] == 4401
    with world.agent("reader") as agent:
        assert agent.closed()[0] == 4403
    for headers in ({"Origin": world.server.origin}, {"Cookie": "sessionid=x"}):
        with pytest.raises(InvalidStatus) as refused:
            world.agent(**headers)
        assert refused.value.response.status_code == 403


# Line 2: seq counts 1, 2, 3 without holes.


def test_line_02_seq_counts_from_one_without_holes(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line02")
        agent.events([opened(2)])
        assert agent.frame("resend")["from"] == 1
        agent.events([opened(1), message(2), message(3)])
        agent.acked(3)
    assert world.seqs("line02") == [1, 2, 3]


# Line 3: hello, welcome, and nothing before.


def test_line_03_nothing_is_legal_before_hello(world: World) -> None:
    with world.agent() as agent:
        agent.events([opened(1)], epoch="e1")
        assert agent.closed()[0] == 4400
    with world.agent() as agent:
        agent.socket.send("not json")
        code, reason = agent.closed()
        assert code == 4400 and "bad frame" in reason


def test_line_03_an_unknown_version_is_told_what_is_spoken(world: World) -> None:
    with world.agent() as agent:
        agent.send({"type": "hello", "protocols": [7], "agent": "line03", "epoch": "e1"})
        code, reason = agent.closed()
    assert code == 4406 and "protocol 1" in reason


def test_line_03_welcome_names_limits_and_where_to_go_on(world: World) -> None:
    with world.agent() as agent:
        welcome = agent.hello(agent="line03")
    assert welcome["protocol"] == 1 and welcome["acked"] == 0 and welcome["incarnation"]
    assert welcome["limits"]["batch"] == 100 and welcome["heartbeat_s"] == 15


def test_line_03_silence_before_hello_ends_after_five_seconds(world: World) -> None:
    with world.agent() as agent:
        code, reason = agent.closed(8)
    assert code == 4400 and "hello" in reason


# Line 4: the ack comes after the commit.


def test_line_04_ack_only_after_commit(world: World, lock: Lock) -> None:
    with world.agent() as agent:
        agent.hello(agent="line04")
        let_go = lock()
        agent.events([opened(1), message(2)])
        agent.quiet("ack", 1.0)
        assert world.seqs("line04") == []
        let_go()
        agent.acked(2)
    assert world.seqs("line04") == [1, 2]


# Line 5: durability and dedup in one transaction.


def test_line_05_events_and_head_commit_together(own_world: World) -> None:
    events = session(2, 30)
    with own_world.agent() as agent:
        agent.hello(agent="line05")
        for start in range(0, len(events), 20):
            agent.events(events[start : start + 20])
        agent.frame("ack")
        own_world.server.kill()
    stored = own_world.seqs("line05")
    head = own_world.rows("SELECT head FROM store_stream")[0][0]
    assert stored == list(range(1, head + 1))
    own_world.server.start()
    with own_world.agent() as agent:
        assert agent.hello(agent="line05")["acked"] == head
        for start in range(0, len(events), 20):
            agent.events(events[start : start + 20])
        agent.acked(len(events))
    assert own_world.seqs("line05") == list(range(1, len(events) + 1))
    own_world.server.stop()
    own_world.verify()


# Line 6: a duplicate is success; the same seq with other content is a conflict.


def test_line_06_a_duplicate_is_success_and_changes_nothing(world: World) -> None:
    events = [opened(1), message(2), message(3)]
    with world.agent() as agent:
        agent.hello(agent="line06a")
        agent.events(events)
        agent.acked(3)
        version = world.rows("SELECT version FROM store_chat WHERE id = ?", world.chat("line06a"))
        agent.events(events)
        assert agent.frame("ack")["upto"] == 3
    chat = world.chat("line06a")
    assert world.rows("SELECT version FROM store_chat WHERE id = ?", chat) == version
    assert world.seqs("line06a") == [1, 2, 3]


def test_line_06_a_conflict_keeps_the_first_and_is_told(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line06b")
        agent.events([opened(1), message(2, tokens=100)])
        agent.acked(2)
        agent.events([message(2, tokens=999)])
        agent.frame("ack")
    chat = world.chat("line06b")
    sql = "SELECT type, body FROM store_event WHERE chat_id = ? ORDER BY chat_seq"
    log = [(kind, json.loads(body)) for kind, body in world.rows(sql, chat)]
    assert [body["tokens"] for kind, body in log if kind == "message.added"] == [100]
    assert log[-1][1]["code"] == "conflict"
    assert world.rows("SELECT conflicts FROM store_agent WHERE name = 'line06b'") == [(1,)]


# Line 7: behind a gap nothing is stored; three fruitless resends end it.


def test_line_07_a_gap_is_asked_for_and_filled(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line07a")
        agent.events([opened(1)])
        agent.events([message(3)])
        agent.events([message(4)])
        assert agent.frame("resend")["from"] == 2
        assert world.seqs("line07a") == [1]
        agent.events([message(2), message(3), message(4)])
        agent.acked(4)
        assert [frame["type"] for frame in agent.seen].count("resend") == 1
    assert world.seqs("line07a") == [1, 2, 3, 4]


def test_line_07_three_fruitless_resends_close_4409(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line07b")
        agent.events([opened(1)])
        for _ in range(3):
            agent.events([message(3)])
            assert agent.frame("resend", 8)["from"] == 2
            # The agent pretends to go back, and still leaves the hole.
            agent.events([opened(1)])
            agent.frame("ack")
        agent.events([message(3)])
        assert agent.closed(8)[0] == 4409


# Line 8: deliberate loss is an event.


def test_line_08_deliberate_loss_is_an_event_in_its_place(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line08")
        agent.events([opened(1), event(2, "gap", "c1", count=40, reason="outbox full"), message(3)])
        agent.acked(3)
    assert world.rows("SELECT gaps FROM store_agent WHERE name = 'line08'") == [(40,)]
    status, answer = world.http("GET", f"/api/v1/chats/{world.chat('line08')}")
    assert status == 200 and "gap" in json.dumps(answer)


# Line 9: the newest connection wins, inside the transaction.


def test_line_09_the_newest_connection_wins(world: World) -> None:
    with world.agent() as older, world.agent() as newer:
        older.hello(agent="line09")
        older.events([opened(1)])
        older.acked(1)
        newer.hello(agent="line09")
        newer.events([message(2)])
        newer.acked(2)
        assert older.closed()[0] == 4408
    assert world.seqs("line09") == [1, 2]


# Line 10: resume where the server stands, also where an ack was lost.


def test_line_10_resume_jumps_over_a_lost_ack(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line10")
        agent.events([opened(1), message(2), message(3)])
        until(lambda: world.seqs("line10") == [1, 2, 3])
    with world.agent() as agent:
        welcome = agent.hello(agent="line10", first_unacked=1, next_seq=4, acked=0)
        assert welcome["acked"] == 3
        agent.events([message(4)])
        agent.acked(4)


# Line 11: the limits.


def test_line_11_a_batch_has_at_most_100_events(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line11a")
        agent.events([message(seq) for seq in range(1, 102)])
        assert agent.closed()[0] == 4400
    assert world.seqs("line11a") == []


def test_line_11_too_large_or_too_deep_events_are_final_rejects(world: World) -> None:
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    with world.agent() as agent:
        agent.hello(agent="line11b")
        agent.events(
            [opened(1), message(2, text="x" * 70_000), event(3, "note", text="t", extra=deep)]
        )
        codes = {entry["seq"]: entry["code"] for entry in agent.acked(3)["rejected"]}
    assert codes == {2: "too_big", 3: "too_deep"}


def test_line_11_a_frame_has_at_most_256_kib(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line11c")
        agent.events([message(seq, text="x" * 60_000) for seq in range(1, 6)])
        assert agent.closed()[0] in (1009, 4413)
    assert world.seqs("line11c") == []


# Line 12: a bad event leaves a tombstone and spoils no other.


def test_line_12_a_bad_event_is_a_tombstone_and_final(world: World) -> None:
    bad = event(2, "message.added", "c1", id=7, role="user", kind="text")
    with world.agent() as agent:
        agent.hello(agent="line12")
        agent.events([opened(1), bad, message(3)])
        ack = agent.acked(3)
        assert [entry["seq"] for entry in ack["rejected"]] == [2]
        assert ack["rejected"][0]["path"] == "$.id"
        agent.events([bad])
        assert agent.frame("ack")["upto"] == 3
    chat = world.chat("line12")
    status, answer = world.http("GET", f"/api/v1/chats/{chat}/events?limit=50")
    graves = [entry for entry in answer["events"] if entry.get("rejected")]
    assert status == 200 and len(graves) == 1
    assert world.seqs("line12") == [1, 2, 3]


@pytest.mark.parametrize("value", ["NaN", "-Infinity", '"\\q"', '"\\ud800"', '"cut}'])
def test_line_12_a_value_that_is_no_json_costs_its_own_event_alone(
    world: World, value: str
) -> None:
    name = f"line12 {value.encode().hex()}"
    good = [json.dumps(each) for each in (opened(1), message(3))]
    bad = '{"seq":2,"type":"note","ts":1,"chat":"c1","level":"info","text":' + value + "}"
    with world.agent() as agent:
        agent.hello(agent=name)
        frame = '{"type":"events","epoch":"e1","events":['
        agent.socket.send(frame + ",".join([good[0], bad, good[1]]) + "]}")
        ack = agent.acked(3)
        # A lone surrogate is replaced; the rest is refused.
        refused = [] if "ud800" in value else [2]
        assert [entry["seq"] for entry in ack.get("rejected", [])] == refused
        agent.events([message(4)])
        agent.acked(4)
    assert world.seqs(name) == [1, 2, 3, 4]


def test_line_12_bytes_that_are_no_utf8_are_refused_by_the_websocket_itself(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line12u")
        agent.socket.send(b'{"type":"events","epoch":"e1","events":[{"x":"\xff"}]}', text=True)
        assert agent.closed()[0] == 1007


# Line 13: flow control.


def test_line_13_a_locked_database_means_busy_and_the_socket_stays(
    world: World, lock: Lock
) -> None:
    with world.agent() as agent:
        agent.hello(agent="line13a")
        let_go = lock()
        agent.events([opened(1)])
        busy = agent.frame("busy", 20)
        assert busy["retry_ms"] > 0 and busy["reason"]
        let_go()
        agent.acked(1)
    assert world.seqs("line13a") == [1]


def test_line_13_twice_the_allowed_flight_is_closed(world: World, lock: Lock) -> None:
    with world.agent() as agent:
        agent.hello(agent="line13b")
        let_go = lock()
        for start in range(1, 2_201, 100):
            agent.events([message(seq) for seq in range(start, start + 100)])
        code, _ = agent.closed(15)
        let_go()
    assert code == 1013


# Line 15: a restored database is another incarnation.


def test_line_15_a_rewound_database_is_a_new_incarnation(own_world: World) -> None:
    world = own_world
    with world.agent() as agent:
        before = agent.hello(agent="line15")
        agent.events([opened(1), message(2)])
        agent.acked(2)
        assert world.press(world.chat("line15"), "ping", "k1")[0] == 201
        agent.frame("command")
    world.server.stop()
    backup = world.path.with_suffix(".backup")
    shutil.copy(world.path, backup)
    world.server.start()
    with world.agent() as agent:
        assert agent.hello(agent="line15")["incarnation"] == before["incarnation"]
        agent.events([message(3), message(4)])
        agent.acked(4)
    world.server.stop()
    shutil.copy(backup, world.path)
    world.server.start()
    with world.agent() as agent:
        welcome = agent.hello(agent="line15", acked=4, next_seq=5)
        assert welcome["incarnation"] != before["incarnation"]
        assert welcome["acked"] == 2
        agent.events([message(3), message(4)])
        agent.acked(4)
        agent.quiet("command")
    assert world.rows("SELECT state FROM store_command") == [("unknown",)]


# Line 16: the agent's clock is kept, shown and never a reason to reject.


def test_line_16_a_wrong_clock_is_shown_and_never_rejected(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="line16", now=time.time_ns() // 1_000_000 - 3_600_000)
        agent.events([opened(1, ts=5), message(2, ts=START), message(3, ts=9)])
        assert "rejected" not in agent.acked(3)
    skew = world.rows("SELECT skew_ms FROM store_agent WHERE name = 'line16'")[0][0]
    assert abs(skew + 3_600_000) < 5_000
    rows = world.rows("SELECT ts, received FROM store_event WHERE chat_id = ? AND seq > 0"
                      " ORDER BY chat_seq", world.chat("line16"))  # fmt: skip
    assert [ts for ts, _ in rows] == [5, START, 9]
    assert all(abs(received - time.time() * 1_000) < 60_000 for _, received in rows)


# Lines 17 to 20: commands.


def start_chat(agent: RawAgent, name: str, **fields: Any) -> None:
    agent.hello(agent=name, **fields)
    agent.events([opened(1)])
    agent.acked(1)


def test_line_17_a_command_is_committed_then_poked_and_redelivered(world: World) -> None:
    with world.agent() as agent:
        start_chat(agent, "line17")
        status, answer = world.press(world.chat("line17"), "compact_fallback", "k1")
        assert status == 201
        command = agent.frame("command")
        assert command["id"] == answer["command"]["id"] and command["chat"] == "c1"
        assert 0 < command["deliver_ms"] <= 60_000 and command["lease_s"] == 600
    with world.agent() as agent:
        agent.hello(agent="line17")
        again = agent.frame("command")
        assert again["id"] == command["id"]
        assert again["deliver_ms"] < command["deliver_ms"]
        agent.events([progress(2, command["id"], "received")])
        agent.acked(2)
    with world.agent() as agent:
        agent.hello(agent="line17")
        agent.quiet("command")


def test_line_17_an_ingest_only_token_gets_no_commands(world: World) -> None:
    with world.agent("ingest-only") as agent:
        start_chat(agent, "line17b")
        status, answer = world.press(world.chat("line17b"), "ping", "k1")
        assert status == 422 and answer["error"]["code"] == "unsupported"
        agent.quiet("command")


def test_line_18_states_go_forward_only_and_the_end_is_final(world: World) -> None:
    with world.agent() as agent:
        start_chat(agent, "line18")
        chat = world.chat("line18")
        command = world.press(chat, "compact_fallback", "k1")[1]["command"]["id"]
        agent.frame("command")
        agent.events([progress(2, command, "received"), progress(3, command, "started")])
        agent.acked(3)
        assert world.command(command)["command"]["state"] == "started"
        agent.events([progress(4, command, "waiting"), progress(5, command, "succeeded", before=9,
                      after=4), progress(6, command, "failed")])  # fmt: skip
        agent.acked(6)
    found = world.command(command)["command"]
    assert (found["state"], found["before"], found["after"]) == ("succeeded", 9, 4)
    sql = "SELECT count(*) FROM store_event WHERE chat_id = ? AND type IN (?, ?)"
    assert world.rows(sql, chat, "command.progress", "server.command")[0][0] >= 6


def test_line_19_a_second_press_meets_the_first_one(world: World) -> None:
    with world.agent() as agent:
        start_chat(agent, "line19a")
        chat = world.chat("line19a")
        first = world.press(chat, "compact_fallback", "k1")[1]["command"]
        status, answer = world.press(chat, "compact_fallback", "k2")
        assert status == 409 and answer["command"]["id"] == first["id"]
        status, same = world.press(chat, "compact_fallback", "k1")
        assert same["command"]["id"] == first["id"]
        command = agent.frame("command")
        assert command["expected"]["epoch"] == "e1" and command["expected"]["compaction"] == 0
        agent.quiet("command")


def test_line_19_a_new_epoch_makes_open_commands_stale(world: World) -> None:
    with world.agent() as agent:
        start_chat(agent, "line19b")
        chat = world.chat("line19b")
        command = world.press(chat, "compact_fallback", "k1")[1]["command"]["id"]
        agent.frame("command")
    with world.agent() as agent:
        agent.hello(agent="line19b", epoch="another")
        agent.quiet("command")
    found = world.command(command)["command"]
    assert found["state"] == "refused" and "stale" in found["state_reason"]


def test_line_20_an_offline_agent_is_said_before_anything_is_queued(world: World) -> None:
    with world.agent() as agent:
        start_chat(agent, "line20a")
    chat = world.chat("line20a")
    until(lambda: world.rows("SELECT connected FROM store_agent WHERE name = 'line20a'") == [(0,)])
    status, answer = world.press(chat, "compact_fallback", "k1")
    assert status == 422 and answer["error"]["code"] == "offline"
    assert world.rows("SELECT count(*) FROM store_command WHERE chat_id = ?", chat) == [(0,)]


def test_line_20_what_is_not_received_in_time_expires_visibly(world: World) -> None:
    with world.agent() as agent:
        start_chat(agent, "line20b")
        chat = world.chat("line20b")
        command = world.press(chat, "ping", "k1")[1]["command"]["id"]
        assert agent.frame("command")["deliver_ms"] <= 15_000
    state = until(lambda: (found := world.command(command)["command"])["state"] == "expired"
                  and found, 25)  # fmt: skip
    assert state["state_reason"] == "not received in time"
