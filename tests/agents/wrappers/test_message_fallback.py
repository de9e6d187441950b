"""The fallback over an app's own list: pairs stay whole, what did not change stays itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxhealth.agents.message_fallback import HEAD, Messages, offer_fallback
from ctxhealth.agents.message_shapes import SHAPES
from ctxhealth.client import Chat, Failed
from ctxhealth.engine import apply_plan, plan_fallback
from tests.client.server import Server

LONG = "word " * 400


def openai_turn(number: int) -> list[Any]:
    call = {"id": f"c{number}", "type": "function",
            "function": {"name": "look", "arguments": '{"at": 1}'}}  # fmt: skip
    return [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": LONG},
        {"role": "assistant", "content": f"answer {number} {LONG}"},
    ]


def anthropic_turn(number: int) -> list[Any]:
    use = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {"at": 1}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": LONG}
    return [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": f"answer {number} {LONG}"}]},
    ]


class LangChainMessage(SimpleNamespace):
    """As LangChain's messages: objects that copy themselves with an update."""

    def model_copy(self, *, update: dict[str, Any]) -> LangChainMessage:
        return LangChainMessage(**{**vars(self), **update})


def langchain_turn(number: int) -> list[Any]:
    call = {"id": f"c{number}", "name": "look", "args": {"at": 1}}
    return [
        LangChainMessage(type="human", content=f"question {number}"),
        LangChainMessage(type="ai", content="", tool_calls=[call]),
        LangChainMessage(type="tool", content=LONG, tool_call_id=f"c{number}", name="look"),
        LangChainMessage(type="ai", content=f"answer {number} {LONG}", tool_calls=[]),
    ]


TURNS = {"openai": openai_turn, "anthropic": anthropic_turn, "langchain": langchain_turn}
every = pytest.mark.parametrize("shape", list(TURNS))


def talk(shape: str, turns: int = 8) -> list[Any]:
    return [message for number in range(turns) for message in TURNS[shape](number)]


def kept_of(shape: str) -> Messages:
    return Messages(SHAPES[shape], lambda text: len(text.split()))


def pairs(shape: str, messages: list[Any]) -> tuple[list[str], list[str]]:
    """Ids of calls and of answers, in order."""
    parts = [part for message in messages for part in SHAPES[shape].parts(message)]
    return [p.call for p in parts if p.call], [p.answers for p in parts if p.answers]


@every
def test_a_list_comes_back_as_the_same_objects(shape: str) -> None:
    kept, messages = kept_of(shape), talk(shape)
    history = kept.history(messages)
    assert len(history.topics) == 7
    back = kept.messages(history)
    assert len(back) == len(messages)
    assert all(one is other for one, other in zip(back, messages, strict=True))


@every
@pytest.mark.parametrize("target", [4_000, 2_500, 1_200])
def test_a_shortened_list_has_whole_pairs_and_the_user_s_words(shape: str, target: int) -> None:
    kept, messages = kept_of(shape), talk(shape)
    history = kept.history(messages)
    plan = plan_fallback(history, target=target, count=kept.count)
    assert plan.outcome == "fell_back"
    after = kept.messages(apply_plan(history, plan))
    calls, answers = pairs(shape, after)
    assert calls == answers
    texts = [part.text for message in after for part in SHAPES[shape].parts(message)]
    assert "question 0" in texts and "question 7" in texts
    sizes = [kept.history(found).total("history") for found in (messages, after)]
    assert sizes[1] <= target < sizes[0]
    # What was written is read as what it is, so that a second press starts from it.
    assert kept.history(after).bulks == () or sum(HEAD in text for text in texts) == 1


@every
def test_a_restored_history_is_the_old_objects_again(shape: str) -> None:
    kept, messages = kept_of(shape), talk(shape)
    history = kept.history(messages)
    after = kept.messages(apply_plan(history, plan_fallback(history, target=1_200)))
    kept.history(after)
    assert all(one is other for one, other in zip(kept.messages(history), messages, strict=True))
    with pytest.raises(Failed, match="earlier run"):
        kept_of(shape).messages(history)


def test_system_messages_stay_at_the_head_and_count_as_fixed() -> None:
    kept = kept_of("openai")
    system = {"role": "system", "content": "be brief and kind"}
    history = kept.history([system, *talk("openai")])
    assert history.system == 4
    after = kept.messages(apply_plan(history, plan_fallback(history, target=1_200)))
    assert after[0] is system


def test_a_result_that_no_model_has_read_is_unread() -> None:
    items = kept_of("openai").history(talk("openai", 1)[:3]).current.items
    assert [item.read for item in items if item.is_result] == [False]


def test_a_press_shortens_the_app_s_list_and_undo_brings_it_back(
    server: Server, chat: Chat, tmp_path: Path
) -> None:
    app = SimpleNamespace(messages=talk("openai"))
    before = list(app.messages)
    offer_fallback(
        chat, lambda: app.messages, lambda new: setattr(app, "messages", new),
        backup_dir=str(tmp_path),
    )  # fmt: skip
    server.command("k1", "compact_fallback", args={"target": 2_000})
    done = server.ended("k1")
    assert (done["state"], done["after"] <= 2_000) == ("succeeded", True)
    assert app.messages != before
    assert server.hellos[-1]["caps"]["fallback"] == "engine"
    server.command("k2", "restore_backup", args={"command": "k1"}, expected={"compaction": 1})
    assert server.ended("k2")["state"] == "succeeded"
    assert app.messages == before


def test_an_unknown_shape_is_said(chat: Chat) -> None:
    with pytest.raises(ValueError, match="'gemini' is not one of openai, anthropic, langchain"):
        offer_fallback(chat, list, list, backup_dir=".", shape="gemini")
