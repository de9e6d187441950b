"""One real QwenPaw, one real server and one model of our own, for all tests of the real thing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.agents.provider import Asked, Provider, says
from tests.agents.qwenpaw.paw import MODEL, Paw, environment
from tests.agents.server import House

SUMMARY = """## Active Task
Status: completed
counting greek words

## Current State
- earlier turns were answered

## Constraints
(none)

## Decisions
- one word after the other

## Open Work
(none)
"""
LONG = "Please count these: " + "alpha beta gamma " * 260


@dataclass
class Scene:
    """What the fake model does now. ``script`` is used up before ``reply``."""

    house: House
    provider: Provider
    paw: Paw
    reply: Any = None
    summary: Any = None
    script: list[Any] = field(default_factory=list)

    def answer(self, asked: Asked) -> Any:
        """The summarizer and the background memory are the same model."""
        system = str(asked.body["messages"][0].get("content"))
        if "continuation summary" in system:
            return self.summary
        if not is_chat(asked):
            return says("nothing to remember")
        return self.script.pop(0) if self.script else self.reply

    def reset(self) -> None:
        self.reply, self.summary, self.script = says("Certainly. " * 40), says(SUMMARY), []
        self.paw.window(20_000)

    def chat(self, session: str) -> dict[str, Any]:
        return self.house.chat(name(session))

    def events(self, session: str, kind: str | None = None) -> list[dict[str, Any]]:
        return self.house.events(name(session), kind)

    def settled(self, session: str, turns: int) -> dict[str, Any]:
        """The chat once ``turns`` turns have ended on the server too, and its structure after."""

        def over() -> bool:
            events = self.events(session)
            kinds = [event["type"] for event in events]
            ended = kinds.count("turn.ended")
            return ended >= turns and "history.snapshot" in kinds[last(kinds, "turn.ended") :]

        self.house.until(over, f"{turns} turns of {session} did not end")
        return self.chat(session)

    def press(self, session: str, kind: str, **args: Any) -> dict[str, Any]:
        return self.house.ended(self.house.press(name(session), kind, **args))

    def requests(self) -> list[Asked]:
        """What the model was asked for the chat itself."""
        return [asked for asked in self.provider.asked if is_chat(asked)]


def last(kinds: list[str], kind: str) -> int:
    return max((at for at, found in enumerate(kinds) if found == kind), default=0)


def name(session: str) -> str:
    return f"default/console/u1/{session}"


def is_chat(asked: Asked) -> bool:
    """A call for the chat carries the agent's tools."""
    return len(asked.body.get("tools") or ()) >= 5


def codes(chat: dict[str, Any]) -> dict[str, str]:
    return {f["code"]: f["severity"] for f in chat["findings"] if not f["closed_at"]}


@contextmanager
def opened(folder: Path) -> Iterator[Scene]:
    """Everything started and connected; stopped at the end."""
    python = environment(folder)
    with Provider() as provider, House(folder / "house") as house:
        paw = Paw(python, folder / "paw", url=house.url, token=house.agent_token, agent="paw")
        paw.prepare(provider.url)
        scene = Scene(house, provider, paw)
        provider.script(MODEL, scene.answer)
        with paw:
            yield scene
