"""Runs inside Agent Zero's own Python, in its tree: does what it is told on one pipe.

Requests are lines of JSON on standard input, answers lines of JSON on the descriptor that the
environment names: standard output belongs to the agent, which paints on it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, TextIO

ANSWER_S = 120


class Driver:
    """Chats by their id; every method is one request and gives a JSON value back."""

    def __init__(self) -> None:
        sys.argv = ["run", "--dockerized=true"]
        from helpers import runtime

        runtime.initialize()
        import agent
        import initialize

        self.agent, self.initialize = agent, initialize

    def open(self, chat: str) -> dict[str, Any]:
        self.agent.AgentContext(config=self.initialize.initialize_agent(), id=chat)
        return self.state(chat)

    def load(self) -> list[str]:
        from helpers import persist_chat

        return list(persist_chat.load_tmp_chats())

    def say(self, chat: str, text: str, wait: bool = True) -> dict[str, Any]:
        """A user's message; with ``wait`` the answer, or the error that ended the turn."""
        began = time.monotonic()
        task = self._context(chat).communicate(self.agent.UserMessage(message=text))
        if not wait:
            return {"running": True}
        return self._ended(chat, task, began)

    def wait(self, chat: str) -> dict[str, Any]:
        """Until the running turn ended."""
        context, began = self._context(chat), time.monotonic()
        if context.task is None:
            return self.state(chat)
        return self._ended(chat, context.task, began)

    def settle(self, chat: str) -> dict[str, Any]:
        """Until the background pass ended."""
        task = self._context(chat).agent0.data.get("_organize_history_task")
        end = time.monotonic() + ANSWER_S
        while task is not None and not task.is_ready() and time.monotonic() < end:
            time.sleep(0.02)
        return self.state(chat)

    def state(self, chat: str) -> dict[str, Any]:
        """The agent's own numbers."""
        context = self._context(chat)
        agent = context.agent0
        history = agent.history
        return {
            "running": bool(context.is_running()),
            "history": history.get_tokens(),
            "limit": history._get_ctx_size_for_history(),
            "bulks": [bulk.get_tokens() for bulk in history.bulks],
            "topics": [topic.get_tokens() for topic in history.topics],
            "current": history.current.get_tokens(),
            "prompt": (agent.data.get("ctx_window") or {}).get("tokens"),
            "ids": _ids(history),
            "log": [[row.type, row.heading, row.content[:300]] for row in context.log.logs[-6:]],
        }

    def times(self, chat: str, text: str, turns: int) -> list[list[float]]:
        """Of so many turns: seconds of each, and how many of them the plugin's hooks took."""
        self.open(f"{chat}-first")
        # The plugin's modules are imported by its first hook, so only now can they be timed.
        self.say(f"{chat}-first", text)
        spent = self._timed_hooks()
        found: list[list[float]] = []
        for number in range(turns):
            spent[0] = 0.0
            name = f"{chat}-{number // 10}"
            if number % 10 == 0:
                self.open(name)
            told = self.say(name, text)
            if told["error"]:
                raise RuntimeError(told["error"])
            found.append([told["seconds"], spent[0]])
        return found

    def _timed_hooks(self) -> list[float]:
        spent = [0.0]
        watch = sys.modules.get("usr.plugins.ctxhealth.helpers.watch")
        if watch is None:
            return spent
        real = getattr(watch.seen, "real", watch.seen)

        def seen(*given: Any) -> None:
            began = time.perf_counter()
            real(*given)
            spent[0] += time.perf_counter() - began

        seen.real = real  # type: ignore[attr-defined]
        watch.seen = seen
        return spent

    def reload(self) -> None:
        """As when any plugin is installed: every plugin's modules are dropped and imported anew."""
        from helpers import plugins

        try:
            plugins.after_plugin_change(["ctxhealth"], python_change=True)
        except Exception as error:
            # The notice to the web page needs a server, which does not run here.
            print(error)

    def wrapped(self) -> dict[str, int]:
        """How often ``History.compress`` is wrapped, and how many reporters live."""
        from helpers.history import History

        depth, found = 0, History.compress
        while hasattr(found, "_ctxhealth_original"):
            depth, found = depth + 1, found._ctxhealth_original
        runtime = sys.modules.get("_ctxhealth_runtime")
        return {"compress": depth, "reporters": len(runtime.reporters) if runtime else 0}

    def call(self, path: str, *args: Any) -> Any:
        """A function anywhere in the agent, by its path: ``helpers.plugins:uninstall_plugin``."""
        from importlib import import_module

        module, _, name = path.partition(":")
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return _plain(found(*args) if callable(found) else found)

    def _ended(self, chat: str, task: Any, began: float) -> dict[str, Any]:
        answer = error = None
        try:
            answer = task.result_sync(ANSWER_S)
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"[:300]
        seconds = time.monotonic() - began
        return {"answer": answer, "error": error, "seconds": seconds, **self.state(chat)}

    def _context(self, chat: str) -> Any:
        return self.agent.AgentContext.get(chat)


def _ids(history: Any) -> list[str]:
    found: list[str] = []
    stack = [history.current, *reversed(history.topics), *reversed(history.bulks)]
    while stack:
        part = stack.pop()
        inner = getattr(part, "records", None) or getattr(part, "messages", None)
        if inner is None:
            found.append(part.id)
        else:
            stack.extend(reversed(inner))
    return found


def _plain(value: Any) -> Any:
    return (
        value if isinstance(value, (str, int, float, bool, type(None), list, dict)) else str(value)
    )


def serve(driver: Driver, answers: TextIO) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        try:
            told = {"ok": getattr(driver, request["do"])(*request.get("args", []))}
        except BaseException as error:
            told = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(told, default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    with open(int(os.environ["CTXHEALTH_TEST_FD"]), "w") as out:
        try:
            made = Driver()
        except BaseException as error:
            out.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
            raise
        out.write(json.dumps({"ok": "ready"}) + "\n")
        out.flush()
        serve(made, out)
        out.flush()
        os._exit(0)
