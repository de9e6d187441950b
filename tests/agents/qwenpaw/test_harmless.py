"""Nothing of the plugin's fails or changes a turn, and nothing stays when it goes."""

from __future__ import annotations

import asyncio
import logging
import time
from statistics import median
from typing import Any

import pytest

from ctxhealth.agents.qwenpaw.plugin import integration
from ctxhealth.agents.qwenpaw.plugin.attempts import Attempt
from ctxhealth.agents.qwenpaw.plugin.calls import Call
from ctxhealth.agents.qwenpaw.plugin.integration import Integration
from ctxhealth.agents.qwenpaw.plugin.patches import Patches
from ctxhealth.agents.qwenpaw.plugin.sdk import client
from ctxhealth.agents.qwenpaw.plugin.watch import Watch
from tests.agents.qwenpaw import host
from tests.agents.qwenpaw.host import LOGGER, Msg, says
from tests.agents.qwenpaw.world import World
from tests.client.server import Server

LONG = "w" * 1_200
_WRAPPED = (
    (host.Manager, "compress"),
    (host.Manager, "_count_model_input_tokens"),
    (host.Manager, "_generate_plain_summary"),
    (host.Manager, "_update_continuation_summary"),
    (host.Manager, "recover_from_context_overflow"),
    (host.Store, "note_write_failure"),
)


def _text(items: list[Any]) -> str:
    assert isinstance(items[-1], Msg)
    return "".join(block.text for block in items[-1].content)


def _boom(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("ours")


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Integration, "dispatched"), (Integration, "built"), (Integration, "before"),
        (Integration, "ended"), (Integration, "step"), (Integration, "watch_of"),
        (Integration, "note_prompt"), (Integration, "snapshot"), (integration, "snapshot_of"),
        (Attempt, "counted"), (Attempt, "finish"), (Watch, "sync"),
        (Call, "replied"), (Call, "__init__"),
    ],
)  # fmt: skip
def test_whatever_raises_in_a_hook_is_swallowed_counted_and_the_turn_is_the_same(
    make: Any, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    stage = make()
    stage.world.model.replies = [says("first"), says("second")]
    monkeypatch.setattr(owner, name, _boom)
    assert _text(stage.say("s", LONG)) == "first"
    assert _text(stage.say("s", LONG + LONG)) == "second"
    stage.plugin.home._worker.submit(lambda: None).result(10)
    stage.run(asyncio.sleep(0))
    assert sum(stage.plugin.care.counts.values()) >= 1
    assert stage.world.model.summarized == 1, "its own compaction ran as ever"


def test_a_swallowed_error_is_told_once_to_the_server_and_counted_after(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make()
    monkeypatch.setattr(Watch, "sync", _boom)
    stage.say("s", "hello")
    stage.say("s", "again")
    assert stage.plugin.home.reporter.flush(10)
    notes = [e["text"] for e in stage.server.events("note")]
    assert [text for text in notes if "step failed" in text] == [
        "the plugin's step failed: ZeroDivisionError: ours"
    ]
    assert stage.plugin.care.counts["step"] == 2


def test_errors_of_the_host_and_the_model_pass_through_untouched(make: Any) -> None:
    stage = make(guard=True, empty_replies=True, summary_latch=True)
    stage.world.model.replies = [host.Reply(error=KeyError("the model's own"))]
    assert isinstance(stage.begin("s", "hello").exception(20), KeyError)


def test_a_stop_puts_every_method_and_the_logger_back(make: Any) -> None:
    originals = [vars(owner)[name] for owner, name in _WRAPPED]
    handlers = list(logging.getLogger(LOGGER).handlers)
    stage = make()
    assert all(vars(o)[n] is not was for (o, n), was in zip(_WRAPPED, originals, strict=True))
    stage.run(stage.plugin.undo(plugin_id="ctxhealth", delete_files=True))
    assert [vars(owner)[name] for owner, name in _WRAPPED] == originals
    assert logging.getLogger(LOGGER).handlers == handlers


def test_hooks_that_the_host_still_holds_after_a_stop_do_nothing(make: Any) -> None:
    stage = make()
    stage.say("s", "hello")
    stage.events("turn.ended")
    told = len(stage.server.stream())
    stage.run(stage.plugin.stop())
    stage.world.model.replies = [says("still here")]
    assert _text(stage.say("s", "again")) == "still here"
    assert [e for e in stage.server.stream()[told:] if e["type"] == "turn.started"] == []


def test_a_second_copy_wraps_the_original_and_not_the_first_copys_wrapper() -> None:
    class Thing:
        def go(self) -> str:
            return "went"

    def louder(original: Any) -> Any:
        return lambda self: original(self) + "!"

    original = vars(Thing)["go"]
    first, second = Patches(), Patches()
    assert first.wrap(Thing, "go", louder) and second.wrap(Thing, "go", louder)
    assert Thing().go() == "went!"
    first.undo()
    assert Thing().go() == "went!", "what is no longer its own is left alone"
    second.undo()
    assert vars(Thing)["go"] is original


def test_without_a_server_the_turn_is_the_same(make: Any, server: Server) -> None:
    stage = make()
    server.stop()
    stage.world.model.replies = [says("alone")]
    assert _text(stage.say("s", "hello")) == "alone"
    assert stage.plugin.care.counts == {}


def test_a_start_that_fails_leaves_the_host_as_it_was(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "Reporter", _boom)
    stage = make.unconnected()
    stage.world.model.replies = [says("fine")]
    assert _text(stage.say("s", "hello")) == "fine"
    assert stage.plugin.care.counts["start"] == 1


def test_the_hooks_take_less_than_4_ms_of_the_hosts_loop_a_turn(make: Any, server: Server) -> None:
    """By the loop thread's own clock, so that a busy machine does not matter; 2% of 200 ms."""
    server.stop()
    plain = _loop_ms(World(), None)
    stage = make.unconnected()
    assert _loop_ms(stage.world, stage) - plain < 4


def _loop_ms(world: World, stage: Any) -> float:
    """The median over 40 turns of a growing chat."""
    world.model.context_size = 1_000_000

    async def turns() -> list[float]:
        took = []
        for _ in range(40):
            begun = time.thread_time()
            async for _item in world.turn("s", [host.user("What is the next step? " * 20)]):
                pass
            took.append(time.thread_time() - begun)
        return took

    took: list[float] = stage.run(turns()) if stage else asyncio.run(turns())
    return median(took) * 1000
