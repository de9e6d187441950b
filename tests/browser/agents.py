"""Agents for browser tests: the public SDK over the real socket, with small real histories."""

from __future__ import annotations

from typing import Any

from ctxhealth.client import Reporter

WINDOW = 200_000


def reporter(socket: str, token: str, name: str = "tester", **more: Any) -> Reporter:
    """A connected reporter."""
    made = Reporter(socket, token, agent=name, runtime="test-agent", **more)
    assert made.wait_connected(20), made.status()
    return made


def healthy_chat(agent: Reporter, name: str, load: int = 60_000, **facts: Any) -> Any:
    """A chat with one answered turn; returns its handle."""
    facts = {"title": f"Chat {name}", "model": "claude-sonnet-4-5", "window": WINDOW, **facts}
    chat = agent.chat(name, **facts)
    answered_turn(chat, load)
    return chat


def answered_turn(chat: Any, load: int, text: str = "a question") -> None:
    turn = chat.turn_started()
    chat.message_added(role="user", tokens=200, text=text, turn=turn)
    request = chat.request_sent(local=load)
    chat.model_replied(
        request,
        usage={"dialect": "openai", "input": load, "output": 300},
        content={"text_chars": 900},
        finish="stop",
    )
    chat.turn_ended(turn, "answered")
    assert chat.reporter.flush(20), chat.reporter.status()


def over_budget_chat(agent: Reporter, name: str, **facts: Any) -> Any:
    """A chat whose last request passed the budget, its user unanswered."""
    chat = healthy_chat(
        agent,
        name,
        reserve=8_000,
        trigger={"tokens": 150_000, "inclusive": False, "scope": "prompt"},
        **facts,
    )
    turn = chat.turn_started()
    chat.message_added(role="user", tokens=200, text="and now?", turn=turn)
    request = chat.request_sent(local=196_000)
    chat.model_replied(
        request,
        usage={"dialect": "openai", "input": 199_000, "output": 0},
        content={"text_chars": 0},
        finish="stop",
    )
    chat.reply_empty(1, request=request, prompt=199_000, completion=0)
    assert agent.flush(20), agent.status()
    return chat
