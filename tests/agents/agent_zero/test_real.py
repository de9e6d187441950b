"""The plugin in a real Agent Zero: its incidents, both buttons, and the numbers on the page.

Needs a tree of Agent Zero named by CTXHEALTH_AGENT_ZERO, and its Python by
CTXHEALTH_AGENT_ZERO_PYTHON. Set CTXHEALTH_STREAMS to a folder to keep what the agent reported.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agent_zero.real import TREE, Process, Tree, answer, script_healthy
from tests.agents.agent_zero.recording import record
from tests.agents.provider import Provider, empty, out_of_quota, overflow, says, slow
from tests.agents.server import House

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(TREE not in os.environ, reason=f"needs an Agent Zero tree: set {TREE}"),
    pytest.mark.timeout(600),
]
WINDOW, SHARE, LIMIT = 20_000, 0.28, 5_600
QUESTION = "please tell me more about it " * 20


class World:
    """One provider, one server, one agent with the plugin; each test has a chat of its own."""

    def __init__(self, folder: Path, provider: Provider, house: House) -> None:
        self.provider, self.house = provider, house
        self.tree = Tree(folder, provider, window=WINDOW, share=SHARE)
        self.tree.plug(house.url, house.agent_token)
        self.agent = Process(self.tree, folder / "agent.log")
        wait = "extensions/python/message_loop_prompts_before/_90_organize_history_wait.py"
        #: The older line waits for ever where nothing is freed, the newer one gives up.
        self.gives_up = "MAX_SYNC" in (self.tree.path / wait).read_text()

    def fill(self, chat: str, over: bool = False) -> dict[str, Any]:
        """Talk until one more turn would cross the limit; with ``over`` until it did."""
        script_healthy(self.provider, 120)
        state = self.agent.do("open", chat)
        while state["history"] < LIMIT - (0 if over else 450):
            if over and state["history"] > LIMIT - 450:
                self.provider.script("fake-utility", out_of_quota())
            state = self.agent.do("say", chat, QUESTION)
        return dict(state)

    def page(self, chat: str, history: int) -> dict[str, Any]:
        """The page once it shows the agent's own history count."""
        house = self.house
        return dict(
            house.until(
                lambda: (p := house.chat(chat))["history"]["value"] == history and p,
                f"the page never showed {history}",
            )
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("agent-zero")
    with Provider() as provider, House(folder / "server") as house:
        made = World(folder, provider, house)
        yield made
        made.agent.stop()


def test_the_page_shows_the_agents_and_the_providers_numbers(world: World) -> None:
    script_healthy(world.provider, 60)
    world.agent.do("open", "healthy")
    before = len(world.provider.asked)
    for _ in range(3):
        state = world.agent.do("say", "healthy", QUESTION)
        assert state["error"] is None
    page = world.page("healthy", state["history"])
    assert page["history"]["limit"] == state["limit"] == LIMIT
    assert (page["window"]["value"], page["window"]["source"]) == (WINDOW, "agent")
    assert (page["trigger"]["value"], page["trigger"]["scope"]) == (LIMIT, "history")
    asked = world.provider.asked[before:]
    chats = [one for one in asked if one.model == "fake-chat"]
    assert page["requests"] == len(chats) == 3
    sent = world.house.events("healthy", "request.sent")
    assert [e["local"] for e in sent if e.get("purpose") != "utility"][-1] == state["prompt"]
    utility = [one.usage for one in asked if one.model == "fake-utility"]
    replied = world.house.events("healthy", "model.replied")
    told = [e.get("usage") for e in replied if e.get("purpose") == "utility"]
    known = [usage["input"] for usage in told if usage]
    assert known
    assert set(known) <= {usage["prompt_tokens"] for usage in utility if usage}
    assert page["state"] in ("healthy", "watch")
    assert page["structure"]["blocks"]
    topics = [b["tokens"] for b in page["structure"]["blocks"] if b["kind"] == "topic"]
    assert topics == state["topics"]


def test_a_utility_without_quota_is_shown_and_both_buttons_recover_the_chat(world: World) -> None:
    world.fill("quota", over=True)
    world.agent.do("settle", "quota")
    calls = len(world.provider.asked_of("fake-chat"))
    dead = world.agent.do("say", "quota", QUESTION)
    assert "credits" in dead["error"]
    assert len(world.provider.asked_of("fake-chat")) == calls, "the chat model was called"
    world.agent.do("settle", "quota")
    dead = world.agent.do("state", "quota")
    page = world.page("quota", dead["history"])
    assert page["last_compaction"]["outcome"] == "summarizer_failed"
    attempt = page["attempts"][-1]
    assert (attempt["summarizer"]["error"], attempt["summarizer"]["calls"]) == ("quota", 1)
    assert page["latches"][0]["kind"] == "summarizer" and page["latches"][0]["justified"]
    record(world.house, "quota", "quota")

    latch = page["latches"][0]["latch"]
    cleared = world.house.ended(world.house.press("quota", "clear_latch", latch=latch))
    assert cleared["state"] == "succeeded"
    assert "credits" in json.dumps(cleared["detail"])

    forced = world.house.ended(world.house.press("quota", "compact_fallback", then="continue"))
    assert forced["state"] == "succeeded", forced
    target = forced["detail"]["target"]
    assert forced["before"] == dead["history"] and forced["after"] <= target
    assert (world.tree.path / forced["backup"]).is_file()

    world.house.until(lambda: _last_turn(world, "quota") == "answered", "no answer", 60)
    after = world.agent.do("settle", "quota")
    assert set(dead["ids"]) <= set(after["ids"]) and len(after["ids"]) == len(set(after["ids"]))
    assert after["history"] < LIMIT
    page = world.page("quota", after["history"])
    assert [latch for latch in page["latches"] if latch["cleared_at"] is None] == []
    record(world.house, "quota", "recovered")


def _last_turn(world: World, chat: str) -> str | None:
    ended = world.house.events(chat, "turn.ended")
    started = world.house.events(chat, "turn.started")
    return ended[-1]["outcome"] if len(ended) == len(started) else None


def test_undo_puts_the_history_back_with_what_was_said_since(world: World) -> None:
    full = world.fill("undo")
    forced = world.house.ended(world.house.press("undo", "compact_fallback", target=2_000))
    assert forced["state"] == "succeeded" and forced["after"] <= 2_000
    said = world.agent.do("say", "undo", "what was it about?")
    world.agent.do("settle", "undo")
    undone = world.house.ended(world.house.press("undo", "restore_backup", command=forced["id"]))
    assert undone["state"] == "succeeded", undone
    back = world.agent.do("state", "undo")
    assert full["ids"] == back["ids"][: len(full["ids"])]
    assert set(said["ids"]) <= set(back["ids"])
    assert back["topics"][: len(full["topics"])] == full["topics"]


def test_a_fallback_in_a_running_turn_waits_for_its_next_step(world: World) -> None:
    before = world.fill("running")
    go_on = threading.Event()
    world.provider.script("fake-chat", slow(30, says(answer("done")), go_on))
    calls = len(world.provider.asked_of("fake-chat"))
    world.agent.do("say", "running", "one more", False)
    world.house.until(lambda: len(world.provider.asked_of("fake-chat")) > calls, "no request")
    pressed = world.house.press("running", "compact_fallback", target=2_500)
    world.house.until(lambda: world.house.command(pressed)["state"] == "waiting", "it did not wait")
    go_on.set()
    done = world.house.ended(pressed)
    assert done["state"] == "succeeded", done
    ended = world.agent.do("wait", "running")
    assert ended["answer"] == "done" and ended["error"] is None
    assert done["after"] <= 2_500
    assert set(before["ids"]) <= set(ended["ids"])
    assert len(ended["ids"]) == len(set(ended["ids"]))


def test_a_utility_that_answers_nothing_is_told_from_one_that_raises(world: World) -> None:
    world.fill("empty")
    world.provider.script("fake-utility", empty())
    if not world.gives_up:
        _never_comes_back(world)
        return
    for _ in range(3):
        state = world.agent.do("say", "empty", QUESTION)
        assert state["error"] is None
        world.agent.do("settle", "empty")
    state = world.agent.do("state", "empty")
    page = world.page("empty", state["history"])
    assert page["last_compaction"]["outcome"] == "summarizer_failed"
    assert page["attempts"][-1]["summarizer"]["error"] == "empty"
    assert "answers nothing" in page["headline"]
    record(world.house, "empty", "empty")
    forced = world.house.ended(world.house.press("empty", "compact_fallback"))
    assert forced["state"] == "succeeded", forced
    after = world.agent.do("state", "empty")
    assert after["history"] == forced["after"] < LIMIT
    assert set(state["ids"]) == set(after["ids"])
    assert world.agent.do("say", "empty", "go on")["answer"]


def _never_comes_back(world: World) -> None:
    """The older line compresses for ever; Rescue ends that and gives the user an answer."""
    state: dict[str, Any] = {}
    for _ in range(3):
        world.agent.do("say", "empty", QUESTION, False)
        try:
            world.house.until(lambda: not world.agent.do("state", "empty")["running"], "", 6)
        except AssertionError:
            break
    state = world.agent.do("state", "empty")
    assert state["running"], "the turn came back"
    passes = len(world.house.events("empty", "compaction.finished"))
    assert passes < 40, "every pass of the loop was told"
    record(world.house, "empty", "loop")
    rescued = world.house.ended(world.house.press("empty", "rescue"), 60)
    assert rescued["state"] == "succeeded", rescued
    world.house.until(lambda: _last_turn(world, "empty") == "answered", "no answer", 30)
    after = world.agent.do("settle", "empty")
    assert after["history"] < LIMIT
    assert set(state["ids"]) <= set(after["ids"])


def test_a_stall_without_any_call_is_told_as_that(world: World) -> None:
    """Messages a little above the size from which they are cut come out no smaller."""
    if not world.gives_up:
        pytest.skip("the older line waits for ever here")
    script_healthy(world.provider, 150)
    world.agent.do("open", "nogain")
    state = world.agent.do("state", "nogain")
    while state["history"] < LIMIT + 300:
        state = world.agent.do("say", "nogain", "more")
        world.agent.do("settle", "nogain")
    page = world.page("nogain", world.agent.do("state", "nogain")["history"])
    last = page["attempts"][-1]
    assert last["outcome"] in ("no_progress", "nothing_foldable"), last
    assert not last["summarizer"]["calls"]
    record(world.house, "nogain", "no-call")


def test_an_oversize_prompt_that_the_provider_refuses_is_an_overflow(world: World) -> None:
    world.fill("refused")
    world.provider.script("fake-chat", overflow(13_000, 14_600))
    dead = world.agent.do("say", "refused", "now")
    assert dead["error"]
    failed = world.house.until(lambda: world.house.events("refused", "model.failed"), "no failure")
    assert failed[0]["error"] == "overflow"
    assert "13000" in failed[0]["detail"]
    page = world.page("refused", dead["history"])
    assert page["window"]["value"] == 13_000
    record(world.house, "refused", "overflow")


def test_a_hook_that_fails_is_swallowed_counted_and_said(world: World) -> None:
    script_healthy(world.provider, 40)
    world.agent.do("open", "broken")
    module = "usr.plugins.ctxhealth.helpers.watch"
    world.agent.do("call", f"{module}:_TAKERS.pop", "message_added")
    state = world.agent.do("say", "broken", "still there?")
    assert state["error"] is None and state["answer"]
    told = world.agent.do("call", f"{module}:station")
    assert told
    world.agent.do("reload")
    assert world.agent.do("say", "broken", "and now?")["answer"]
    state = world.agent.do("state", "broken")
    world.page("broken", state["history"])


def test_a_reload_of_all_plugins_leaves_one_reporter_and_one_wrapper(world: World) -> None:
    script_healthy(world.provider, 40)
    world.agent.do("open", "reloaded")
    for _ in range(3):
        world.agent.do("reload")
        assert world.agent.do("say", "reloaded", "again")["answer"]
    counted = world.agent.do("wrapped")
    assert counted == {"compress": 1, "reporters": 1}
    sent = [e for e in world.house.events("reloaded", "message.added") if e["role"] == "user"]
    assert len(sent) == 3


def test_settings_saved_on_the_page_take_effect_at_once(world: World) -> None:
    script_healthy(world.provider, 40)
    world.agent.do("open", "settings")
    path = world.tree.path / "usr" / "plugins" / "ctxhealth" / "config.json"
    on = json.loads(path.read_text())
    save = "helpers.plugins:save_plugin_config"
    world.agent.do("call", save, "ctxhealth", "", "", {**on, "enabled": False})
    assert world.agent.do("wrapped") == {"compress": 0, "reporters": 0}
    assert world.agent.do("say", "settings", "unseen")["answer"]
    world.agent.do("call", save, "ctxhealth", "", "", on)
    assert world.agent.do("wrapped") == {"compress": 1, "reporters": 1}
    state = world.agent.do("say", "settings", "seen")
    world.page("settings", state["history"])


def test_uninstalled_it_leaves_nothing_behind(world: World) -> None:
    """Last in this file: the agent goes on without the plugin."""
    script_healthy(world.provider, 40)
    world.agent.do("open", "bare")
    world.agent.do("call", "helpers.plugins:uninstall_plugin", "ctxhealth")
    assert world.agent.do("wrapped") == {"compress": 0, "reporters": 0}
    assert not (world.tree.path / "usr" / "plugins" / "ctxhealth").exists()
    state = world.agent.do("say", "bare", "still there?")
    assert state["error"] is None and state["answer"]
