"""The plugin's parts that need no QwenPaw: settings, ids, sizes, error classes, the folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxhealth.agents.qwenpaw import make
from ctxhealth.agents.qwenpaw.plugin.blocks import content_of, count, is_request, parts_of
from ctxhealth.agents.qwenpaw.plugin.calls import usage_of
from ctxhealth.agents.qwenpaw.plugin.facts import dialect_of, reserve_of
from ctxhealth.agents.qwenpaw.plugin.failures import failure_of, summarizer_error
from ctxhealth.agents.qwenpaw.plugin.keys import Key
from ctxhealth.agents.qwenpaw.plugin.settings import Settings, read_settings
from ctxhealth.agents.qwenpaw.plugin.structure import snapshot_of, structure_of
from ctxhealth.agents.vendoring import CannotMake

# -- settings


def test_later_sources_win_and_switches_are_off_by_default(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"token": "file", "guard": "yes"}))
    environ = {"CTXHEALTH_URL": "http://e", "CTXHEALTH_TOKEN": "environment"}
    found, troubles = read_settings({"agent": "paw"}, tmp_path, environ)
    assert (found.url, found.token, found.agent) == ("http://e", "file", "paw")
    assert (found.guard, found.empty_replies, found.summary_latch) == (True, False, False)
    assert troubles == []


@pytest.mark.parametrize(
    ("given", "trouble"),
    [
        ({"guard": "perhaps"}, "guard: 'perhaps' is neither true nor false"),
        ({"text": "all"}, "text: 'all' is not one of none, excerpt, full"),
        ({"agent": ""}, "agent: must be a text, not ''"),
        ({"colour": "red"}, "colour is no setting of ctxhealth"),
    ],
)
def test_a_bad_value_is_named_and_the_default_stays(
    tmp_path: Path, given: dict[str, Any], trouble: str
) -> None:
    found, troubles = read_settings({"agent": "paw", **given}, tmp_path, {})
    assert trouble in troubles[0] and found.guard is False and found.text == "excerpt"


def test_a_broken_file_is_said_and_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    found, troubles = read_settings({"agent": "paw"}, tmp_path, {})
    assert found == Settings(agent="paw") and "config.json cannot be read" in troubles[0]


# -- ids


@pytest.mark.parametrize(
    "key", [Key("default", "console", "u1", "s1"), Key("a/b", "im:x", "ü 1", "c%2Fd")]
)
def test_a_chats_id_gives_its_key_back(key: Key) -> None:
    assert Key.parse(key.id) == key


@pytest.mark.parametrize("id", ["", "one", "a/b/c", "a/b/c/", "a/b/c/d/e", "a/b/c/d%2"])
def test_an_id_of_somebody_else_is_no_key(id: str) -> None:
    assert Key.parse(id) is None


# -- sizes and structure


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 0), ("ab", 1), ("é" * 8, 4)])
def test_sizes_are_bytes_by_four_rounded_as_qwenpaw_rounds(text: str, tokens: int) -> None:
    assert count(text) == tokens


@pytest.mark.parametrize(
    ("window", "reserve"),
    [(10, 1), (1_000, 50), (32_768, 1_638), (81_920, 4_096), (272_000, 4_096)],
)
def test_the_reserve_is_the_managers(window: int, reserve: int) -> None:
    assert reserve_of(window) == reserve


def _message(role: str, *blocks: dict[str, Any], tag: str | None = None) -> dict[str, Any]:
    metadata = {} if tag is None else {"qwenpaw_tag": tag}
    return {"id": f"m{id(blocks)}", "role": role, "content": list(blocks), "metadata": metadata}


def test_media_and_folded_results_are_seen_for_what_they_are() -> None:
    output = [{"type": "text", "text": "[scroll folded] gone"}, {"type": "data"}]
    message = _message("assistant", {"type": "tool_result", "id": "c", "output": output})
    (part,) = parts_of(message)
    assert part.tokens == 2_000 + 5 and part.folded and part.answer == "c"


def test_the_memory_is_a_bulk_notices_are_no_requests_and_turns_are_topics() -> None:
    context = [
        _message("user", {"type": "text", "text": "x" * 40, "id": "b"}, tag="scroll_memory"),
        _message("user", {"type": "text", "text": "ask  one", "id": "u1"}),
        _message("user", {"type": "text", "text": "go on", "id": "n"}, tag="loop_continuation"),
        _message("user", {"type": "text", "text": "ask two", "id": "u2"}),
    ]
    assert [is_request(m) for m in context] == [False, True, False, True]
    told = snapshot_of(structure_of(context), records=3)
    assert [(b["tokens"], b["records"]) for b in told["bulks"]] == [(10, 3)]
    assert [(t["title"], t["messages"]) for t in told["topics"]] == [("ask one", 2)]
    assert [(i["id"], i["role"]) for i in told["order"]] == [
        ("u1", "user"), ("n", "system"), ("u2", "user"),
    ]  # fmt: skip
    assert told["history"] == 10 + 2 + 1 + 2


def test_a_reply_of_blanks_has_no_text_and_thinking_is_not_text() -> None:
    blocks = [{"type": "text", "text": " \n"}, {"type": "thinking", "thinking": "hm"}]
    assert content_of(blocks) == {
        "text_chars": 0, "tool_calls": 0, "thinking_chars": 2, "data": 0,
    }  # fmt: skip


# -- usage and errors


def test_usage_of_all_zero_is_no_reading() -> None:
    assert usage_of({"input_tokens": 0, "output_tokens": 0}, "openai") is None
    assert usage_of(None, "openai") is None
    found = usage_of({"input_tokens": 7, "output_tokens": 0, "cache_input_tokens": 3}, "anthropic")
    assert found == {"dialect": "anthropic", "input": 7, "output": 0, "cache_read": 3}


def test_the_dialect_is_the_innermost_models() -> None:
    class AnthropicChatModel:
        _inner = None

    wrapped = SimpleNamespace(_inner=SimpleNamespace(_inner=AnthropicChatModel()))
    assert dialect_of(wrapped) == "anthropic" and dialect_of(SimpleNamespace()) == "openai"


class _Api(Exception):
    def __init__(self, status: int | None, said: str, body: Any = None) -> None:
        super().__init__(said)
        self.status_code, self.body = status, body


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (_Api(400, "maximum context length is 8192 tokens"), "overflow"),
        (_Api(400, "bad", {"error": {"code": "context_length_exceeded"}}), "overflow"),
        (_Api(400, "unknown parameter: context"), "invalid"),
        (_Api(429, "rate limit reached"), "rate_limit"),
        (_Api(429, "you exceeded your current quota"), "quota"),
        (_Api(402, "payment"), "quota"),
        (_Api(401, "no key"), "auth"),
        (_Api(413, "body too big"), "too_large"),
        (_Api(500, "oops"), "provider"),
        (_Api(504, "gateway"), "timeout"),
        (TimeoutError(), "timeout"),
        (ConnectionResetError("reset"), "network"),
        (ValueError("?"), "other"),
    ],
)
def test_a_providers_exception_gets_its_class(error: Exception, named: str) -> None:
    assert failure_of(error)["error"] == named
    assert summarizer_error(error) == (named if named not in ("invalid", "too_large") else "other")


# -- the folder


def test_the_folder_is_complete_and_made_again_in_place_with_the_users_settings(
    tmp_path: Path,
) -> None:
    files = {path.relative_to(tmp_path).as_posix() for path in make(tmp_path)}
    assert {"ctxhealth/plugin.json", "ctxhealth/plugin.py"} <= files
    assert {"ctxhealth/vendor/client/reporter.py", "ctxhealth/vendor/engine/guard.py"} <= files
    assert not [name for name in files if "__pycache__" in name]
    manifest = json.loads((tmp_path / "ctxhealth" / "plugin.json").read_text())
    assert manifest["id"] == "ctxhealth" and manifest["entry"] == {"backend": "plugin.py"}
    (tmp_path / "ctxhealth" / "config.json").write_text('{"url": "http://here"}')
    make(tmp_path)
    assert (tmp_path / "ctxhealth" / "config.json").read_text() == '{"url": "http://here"}'


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ctxhealth").mkdir()
    with pytest.raises(CannotMake, match="was not made by ctxhealth"):
        make(tmp_path)


_LOAD = """
import importlib.util, sys, types
sys.path[:] = [p for p in sys.path if "site-packages" in p or "lib" in p]
folder = sys.argv[1]
spec = importlib.util.spec_from_file_location(
    "plugin_ctxhealth", folder + "/plugin.py", submodule_search_locations=[folder])
module = importlib.util.module_from_spec(spec)
sys.modules["plugin_ctxhealth"] = module
module.__package__, module.__path__ = "plugin_ctxhealth", [folder]
spec.loader.exec_module(module)
assert "ctxhealth" not in sys.modules, "the checkout was used"
from plugin_ctxhealth.sdk import client, engine
assert client.__name__ == "plugin_ctxhealth.vendor.client"
asked = []
api = types.SimpleNamespace(config={}, **{f"register_{n}": lambda *a, **k: asked.append(a)
    for n in ("startup_hook", "shutdown_hook", "uninstall_hook", "middleware", "runtime_hook")})
module.plugin.register(api)
print(len(asked), module.plugin.binding.missing != [], client.Reporter.__name__)
"""


def test_the_folder_loads_as_qwenpaw_loads_it_with_nothing_of_ours_installed(
    tmp_path: Path,
) -> None:
    make(tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "-c", _LOAD, str(tmp_path / "ctxhealth")],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # Start, stop and undo; without QwenPaw there is nothing else to register with.
    assert done.stdout.split() == ["3", "True", "Reporter"]
