"""What tests do with the stand-in: talk, look, press."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from ctxhealth.agents.agent_zero import make
from tests.client.server import TOKEN, Server, eventually

HOST = Path(__file__).with_name("host")
LIMIT = 5_600
_commands = count(1)


def made_plugin(folder: Path) -> Path:
    """A plugins folder with the plugin in it."""
    make(folder)
    return folder


def reply(text: str = "yes", tool: str = "response") -> str:
    """What a model says; with another tool, that tool echoes ``text``."""
    args = {"text": text} if tool == "response" else {"echo": text}
    return json.dumps({"tool_name": tool, "tool_args": args})


class StandIn:
    """``agent`` and ``history`` are the stand-in's modules, ``models`` what its models do."""

    def __init__(self, folder: Path, server: Server, **settings: Any) -> None:
        self.folder, self.server = folder, server
        self.agent: Any = import_module("agent")
        self.history: Any = import_module("helpers.history")
        self.extension: Any = import_module("helpers.extension")
        import_module("helpers.files").BASE = folder  # type: ignore[attr-defined]
        self.extension.ROOTS[:] = [folder / "usr" / "plugins"]
        self.models: dict[str, Callable[..., Any]] = self.agent.MODELS
        self.models.update(chat=lambda text: reply(), utility=lambda text: "A short summary.")
        self.settings: dict[str, Any] = import_module("helpers.plugins").CONFIG
        self.settings.update(url=server.url, token=TOKEN, agent="a0", **settings)

    def module(self, name: str) -> Any:
        """One of the plugin's own modules, as the agent imported it."""
        return import_module(f"usr.plugins.ctxhealth.helpers.{name}")

    def stop(self) -> None:
        for context in self.agent.AgentContext.all():
            if context.task:
                context.task.kill()
        self.module("life").stop("the test ended")

    def open(self, chat: str = "c") -> Any:
        return self.agent.AgentContext(id=chat)

    def say(self, context: Any, text: str = "go on") -> Any:
        """A user's message; the answer. Raises what ended the turn."""
        return context.communicate(self.agent.UserMessage(text)).result_sync(20)

    def settle(self, context: Any) -> int:
        """Until the background pass ended; the history's tokens then."""
        task = context.agent0.data.get("_organize_history_task")
        if task is not None:
            eventually(task.is_ready, "the background pass")
        return int(context.agent0.history.get_tokens())

    def preload(self, context: Any, topics: int = 20, words: int = 150) -> Any:
        """Past turns of two messages each, without talking; the history."""
        history = context.agent0.history
        for number in range(topics):
            history.new_topic()
            asked = f"question {number} " + " ".join(f"q{n}" for n in range(words))
            said = " ".join(f"w{n}" for n in range(words))
            history.add_message(False, {"user_message": asked})
            history.add_message(True, reply(said))
        return history

    def events(self, kind: str, chat: str = "c") -> list[dict[str, Any]]:
        return [event for event in self.server.events(kind) if event.get("chat") == chat]

    def told(self, kind: str, number: int = 1, chat: str = "c") -> list[dict[str, Any]]:
        """At least so many events of a type, waited for."""
        eventually(lambda: len(self.events(kind, chat)) >= number, f"{number} {kind}")
        return self.events(kind, chat)

    def press(self, kind: str, chat: str = "c", **args: Any) -> dict[str, Any]:
        """Press and wait; the last progress."""
        command = self.send(kind, chat, **args)
        return self.server.ended(command)

    def send(self, kind: str, chat: str = "c", **args: Any) -> str:
        command = f"cmd-{next(_commands)}"
        self.server.command(command, kind, chat, args=args)
        return command

    def state(self, command: str) -> str | None:
        states = self.server.states(command)
        return states[-1] if states else None


def ids_of(history: Any) -> list[str]:
    """Ids of every message, also behind summaries, oldest first."""
    found: list[str] = []
    stack = [history.current, *reversed(history.topics), *reversed(history.bulks)]
    while stack:
        part = stack.pop()
        inner = getattr(part, "records", None)
        inner = getattr(part, "messages", None) if inner is None else inner
        if inner is None:
            found.append(part.id)
        else:
            stack.extend(reversed(inner))
    return found
