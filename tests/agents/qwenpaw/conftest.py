"""The plugin in the small QwenPaw, its loop in a thread, reporting to a real server half."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.agents.qwenpaw.plugin import plugin as entry
from ctxhealth.agents.qwenpaw.plugin.binding import Binding
from ctxhealth.client import limits
from tests.agents.qwenpaw import host
from tests.agents.qwenpaw.scene import Scene, opened
from tests.agents.qwenpaw.world import World
from tests.client.server import TOKEN, Server, eventually, running

_numbers = itertools.count(1)


def binding(**changed: Any) -> Binding:
    """The small QwenPaw's classes."""
    parts: dict[str, Any] = {
        "version": "test", "manager": host.Manager, "store": host.Store, "unfit": host.Unfit,
        "hook": host.Hook, "phase": host.Phase, "result": host.Result, "action": host.Action,
        "request": host.Request, "middleware": host.Middleware, "message": host.Msg,
        "text": lambda text: host.text(text), "tool_result": host.result,
        "text_start": host.TextEvent, "text_delta": host.TextEvent, "text_end": host.TextEvent,
        "reply_end": host.ReplyEnd,
    }  # fmt: skip
    return Binding(**{**parts, **changed})


class Stage:
    """One QwenPaw with the plugin in it. ``say`` holds a turn to its end."""

    def __init__(self, server: Server, folder: Path, bound: Binding, **settings: Any) -> None:
        self.server, self.world = server, World()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.plugin = entry.Plugin()
        self.world.config = {
            "url": server.url, "token": TOKEN, "agent": f"paw-{next(_numbers)}",
            "folder": str(folder), **settings,
        }  # fmt: skip
        self.bound = bound
        self.plugin.register(self.world)
        for start in self.world.started:
            self.run(start())

    def run(self, step: Coroutine[Any, Any, Any]) -> Any:
        return self.spawn(step).result(20)

    def spawn(self, step: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(step, self.loop)

    def say(self, session: str, said: str) -> list[Any]:
        found: list[Any] = self.run(self._say(session, said))
        return found

    def begin(self, session: str, said: str) -> Future[Any]:
        return self.spawn(self._say(session, said))

    async def _say(self, session: str, said: str) -> Any:
        return await self.world.say(session, said)

    def events(self, kind: str, session: str = "s") -> list[dict[str, Any]]:
        """What the server has of a chat, once everything said so far is there."""
        home = self.plugin.home
        if home is not None:
            home._worker.submit(lambda: None).result(10)
            assert home.reporter.flush(10)
        return [e for e in self.server.events(kind) if e.get("chat") == chat(session)]

    def press(self, kind: str, session: str = "s", **args: Any) -> dict[str, Any]:
        name = f"k{next(_numbers)}"
        self.server.command(name, kind, chat=chat(session), args=args)
        return self.server.ended(name)

    def stop(self) -> None:
        self.run(self.plugin.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)


class Making:
    """``make(...)`` waits for the connection, ``make.unconnected(...)`` does not."""

    def __init__(self, server: Server, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.server, self.folder, self.patch = server, folder, patch
        self.made: list[Stage] = []

    def unconnected(self, bound: Binding | None = None, **settings: Any) -> Stage:
        given = bound or binding()
        self.patch.setattr(entry, "bind", lambda: given)
        stage = Stage(self.server, self.folder, given, **settings)
        self.made.append(stage)
        return stage

    def __call__(self, bound: Binding | None = None, **settings: Any) -> Stage:
        stage = self.unconnected(bound, **settings)
        eventually(lambda: self.server.live, "a connection")
        return stage


def chat(session: str = "s") -> str:
    return f"default/console/u1/{session}"


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(limits, "LONGEST_DELAY_S", 0.05)


@pytest.fixture
def make(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:  # fmt: skip
    """Makes stages; ``bound`` says what this QwenPaw has."""
    makes = Making(server, tmp_path, monkeypatch)
    yield makes
    for stage in makes.made:
        stage.stop()


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One QwenPaw for all tests of the real thing: it takes a minute to start."""
    with opened(tmp_path_factory.mktemp("qwenpaw")) as scene:
        yield scene


@pytest.fixture
def scene(stage: Scene) -> Scene:
    stage.reset()
    return stage
