"""Made, installed, configured, reloaded, removed: the plugin as a folder in a running agent."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.agents.agent_zero import make
from ctxhealth.agents.agent_zero.points import POINTS
from ctxhealth.agents.qwenpaw import make as make_for_qwenpaw
from ctxhealth.agents.vendoring import CannotMake
from tests.agents.agent_zero.stand_in import StandIn
from tests.client.server import eventually

_STANDARD = set(sys.stdlib_module_names) | {"__future__"}
#: What the folder may import: the agent's own modules, what it ships, and itself.
_SHIPPED = {"helpers", "usr", "websockets"}


def imported(path: Path) -> set[str]:
    """Top-level names that a file imports absolutely."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found


def test_the_folder_needs_nothing_beyond_what_the_agent_ships(plugin_folder: Path) -> None:
    files = list((plugin_folder / "ctxhealth").rglob("*.py"))
    assert len(files) > 60
    needed = set().union(*map(imported, files)) - _STANDARD - _SHIPPED
    assert needed == set()


def test_every_extension_file_carries_the_plugins_name(plugin_folder: Path) -> None:
    files = list((plugin_folder / "ctxhealth" / "extensions").rglob("*.py"))
    assert len(files) == len(POINTS)
    assert all(path.stem.endswith("_ctxhealth") for path in files)


def test_making_it_again_keeps_the_users_settings(tmp_path: Path) -> None:
    make(tmp_path)
    settings = tmp_path / "ctxhealth" / "config.json"
    settings.write_text('{"url": "http://there"}')
    settings.chmod(0o600)
    (tmp_path / "ctxhealth" / ".toggle-0").touch()
    (tmp_path / "ctxhealth" / "helpers" / "stale.py").write_text("")
    make(tmp_path)
    assert settings.read_text() == '{"url": "http://there"}'
    assert settings.stat().st_mode & 0o077 == 0
    assert (tmp_path / "ctxhealth" / ".toggle-0").exists()
    assert not (tmp_path / "ctxhealth" / "helpers" / "stale.py").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["ctxhealth"]


def test_the_plugin_of_another_agent_is_left_alone(tmp_path: Path) -> None:
    make_for_qwenpaw(tmp_path)
    with pytest.raises(CannotMake, match="is the plugin for qwenpaw, not for agent-zero"):
        make(tmp_path)
    assert (tmp_path / "ctxhealth" / "plugin.json").is_file()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ctxhealth").mkdir()
    with pytest.raises(CannotMake, match="was not made by ctxhealth"):
        make(tmp_path)


def original(host: StandIn) -> Any:
    return getattr(host.history.History.compress, "_ctxhealth_original", None)


def reload(host: StandIn) -> None:
    """As when any plugin is installed: all plugins' modules are dropped."""
    for name in [n for n in sys.modules if n.startswith("usr")]:
        del sys.modules[name]
    host.extension.forget()


def test_a_reload_leaves_one_reporter_one_wrapper_and_the_open_turn(host: StandIn) -> None:
    context = host.open()
    said = iter(["no JSON", "still none", '{"tool_name": "response", "tool_args": {"text": "a"}}'])

    def chat(text: str) -> str:
        reload(host)
        return next(said)

    host.models["chat"] = chat
    assert host.say(context) == "a"
    ended = host.told("turn.ended")
    assert [event["turn"] for event in ended] == [host.told("turn.started")[0]["turn"]]
    assert not hasattr(original(host), "_ctxhealth_original")
    assert len(sys.modules["_ctxhealth_runtime"].reporters) == 1
    assert len(host.told("message.added", 7)) == 7


def test_removed_it_undoes_what_it_wrapped(host: StandIn) -> None:
    host.say(host.open())
    host.told("turn.ended")
    before = original(host)
    host.module("life").stop("uninstalled", forget=True)
    assert host.history.History.compress is before
    assert host.module("books").station() is None
    assert not (host.folder / "usr" / "ctxhealth").exists()
    assert host.say(host.agent.AgentContext.get("c")) == "yes"


def test_switched_off_it_patches_nothing_and_switched_on_again_it_shows_every_chat(
    host: StandIn,
) -> None:
    context = host.open()
    host.say(context)
    host.told("turn.ended")
    life = host.module("life")
    life.configure({**host.settings, "enabled": False})
    assert original(host) is None
    assert host.say(context) == "yes"
    shown = len(host.events("history.snapshot"))
    life.configure(host.settings)
    host.told("history.snapshot", shown + 1)
    assert host.events("history.snapshot")[-1]["history"] == context.agent0.history.get_tokens()


@pytest.mark.parametrize(("wrong", "named"), [({"text": "all"}, "text"), ({"url": "there"}, "url")])
def test_a_wrong_setting_is_named_and_stops_nothing(
    host: StandIn, caplog: pytest.LogCaptureFixture, wrong: dict[str, str], named: str
) -> None:
    context = host.open()
    host.module("life").configure({**host.settings, **wrong})
    assert any(record.getMessage().startswith(f"ctxhealth: {named}:") for record in caplog.records)
    assert host.say(context) == "yes"


def test_commands_that_the_owner_switched_off_are_not_offered(host: StandIn) -> None:
    host.settings["commands"] = False
    host.say(host.open())
    hello = eventually(lambda: host.server.hellos, "hello")[-1]
    assert hello["caps"]["commands"] == ["ping"]


def test_an_agent_of_another_build_is_unsupported_not_guessed(host: StandIn) -> None:
    del host.history.Bulk
    host.say(host.open())
    note = eventually(
        lambda: [e for e in host.server.events("note") if e.get("code") == "unsupported"], "a note"
    )[0]
    assert "helpers.history.Bulk" in note["text"]
    commands = host.server.hellos[-1]["caps"]["commands"]
    assert "compact_fallback" not in commands and "continue" in commands


def test_a_chat_loaded_from_disk_is_shown_when_the_application_is_up(host: StandIn) -> None:
    context = host.open()
    loaded = host.history.History(context.agent0)
    context.agent0.history = loaded
    host.preload(context, topics=3)
    host.extension.call_extensions_sync("_functions/__main__/init_a0/end", None, data={})
    shown = host.told("history.snapshot")[-1]
    assert (len(shown["topics"]), shown["history"]) == (2, loaded.get_tokens())
    assert [entry["in"] for entry in shown["order"]].count("current") == 2


def test_a_failed_pass_ends_with_the_process_that_kept_it(host: StandIn) -> None:
    context = host.open()
    host.preload(context)

    def raising(text: str) -> str:
        raise ValueError("no credits")

    host.models["utility"] = raising
    with pytest.raises(Exception, match="credits"):
        host.say(context)
    host.settle(context)
    (latch,) = host.told("latch.set")
    assert latch["scope"] == "process"
    host.module("life").stop("the process ends")
    sys.modules.pop("_ctxhealth_agent_zero")
    reload(host)
    del host.agent.AgentContext._contexts["c"]
    host.open()
    (cleared,) = host.told("latch.cleared")
    assert (cleared["latch"], cleared["how"]) == (latch["latch"], "restart")


def test_a_latch_outlives_a_reload_for_its_pass_does(host: StandIn) -> None:
    context = host.open()
    host.preload(context)

    def raising(text: str) -> str:
        raise ValueError("no credits")

    host.models["utility"] = raising
    with pytest.raises(Exception, match="credits"):
        host.say(context)
    host.settle(context)
    host.told("latch.set")
    reload(host)
    host.press("snapshot")
    assert not host.events("latch.cleared")
    assert host.press("clear_latch")["state"] == "succeeded"
