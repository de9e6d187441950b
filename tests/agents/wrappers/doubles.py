"""Doubles of the libraries' clients: objects in the shapes that the published packages gave.

``shapes.json`` holds what ``openai`` and ``anthropic`` made of the fake provider's answers.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SHAPES: dict[str, Any] = json.loads((Path(__file__).parent / "shapes.json").read_text("utf-8"))


def shaped(value: Any) -> Any:
    """Dictionaries as objects, as the libraries' models are."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: shaped(entry) for key, entry in value.items()})
    return [shaped(entry) for entry in value] if isinstance(value, list) else value


class BadRequest(Exception):
    """As both libraries' errors of a status."""

    def __init__(self, body: Any, code: str | None = None) -> None:
        super().__init__(f"Error code: 400 - {body}")
        self.status_code, self.body, self.code = 400, body, code


class APITimeoutError(Exception):
    """Named as the libraries name it; it has no status."""


class Stream:
    """A synchronous stream: an iterator that can be entered and closed."""

    def __init__(self, events: list[Any], error: BaseException | None = None) -> None:
        self._iterator = self._all(events, error)
        self.closed = False
        self.response = "the response"

    def _all(self, events: list[Any], error: BaseException | None) -> Iterator[Any]:
        yield from events
        if error is not None:
            raise error

    def __iter__(self) -> Iterator[Any]:
        return self._iterator

    def __next__(self) -> Any:
        return next(self._iterator)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True


class AsyncStream:
    """The same for an asynchronous client."""

    def __init__(self, events: list[Any]) -> None:
        self._iterator = self._all(events)
        self.closed = False

    async def _all(self, events: list[Any]) -> AsyncIterator[Any]:
        for event in events:
            yield event

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._iterator

    async def __anext__(self) -> Any:
        return await self._iterator.__anext__()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        self.closed = True


class Method:
    """``create`` and its like: takes the next step; a callable step is called."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.given: list[dict[str, Any]] = []

    def __call__(self, **given: Any) -> Any:
        self.given.append(given)
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, BaseException):
            raise step
        return step() if isinstance(step, Callable) else step  # type: ignore[arg-type]


def resource(**methods: Any) -> Any:
    """A resource whose methods belong to its class, as the libraries' do."""
    made = type("Resource", (), {name: staticmethod(method) for name, method in methods.items()})
    return made()


def openai(create: Any, responses: Any = None) -> Any:
    """A client with chat.completions and, where a method is given, responses."""
    client = SimpleNamespace(
        base_url="https://api.openai.com/v1/",
        chat=SimpleNamespace(completions=resource(create=create, parse=create)),
    )
    if responses is not None:
        client.responses = resource(create=responses, parse=responses)
    return client


def anthropic(create: Any, **more: Any) -> Any:
    return SimpleNamespace(messages=resource(create=create, **more))
