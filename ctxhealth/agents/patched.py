"""A client object whose methods are observed in place, and given back as they were."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ctxhealth.agents.observed import Call, Dialect, Observer
from ctxhealth.agents.streamed import watched

_MISSING = object()
# Ours -> what it stands for, as long as ours is in use.
_originals: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _original(method: Any) -> Any:
    try:
        return _originals.get(method, method)
    except TypeError:
        # A method of C code takes no weak reference, and is none of ours.
        return method


class Observed:
    """A client under observation. ``undo`` takes every patch off again.

    ``unsupported``: methods that this version of the library does not have.
    """

    def __init__(self, client: Any, observer: Observer) -> None:
        self.client, self.observer = client, observer
        self.unsupported: list[str] = []
        self._undone: list[Callable[[], None]] = []

    @property
    def mistakes(self) -> int:
        """How often something went wrong in the reporting, and was swallowed."""
        return self.observer.mistakes

    def undo(self) -> None:
        while self._undone:
            self._undone.pop()()

    def watch(
        self,
        path: Sequence[str],
        dialect: Dialect,
        wrap: Callable[[Any, Observer, Dialect], Any] | None = None,
    ) -> None:
        """Observe the method at ``path``: its attributes' names, from the client on."""
        owner = self.client
        for name in path[:-1]:
            owner = getattr(owner, name, None)
        method = getattr(owner, path[-1], None)
        if not callable(method):
            self.unsupported.append(".".join(path))
            return
        # Observed before: the newer observation takes its place, so that no call is told twice.
        method = _original(method)
        value = (wrap or observed)(method, self.observer, dialect)
        _originals[value] = method
        self._put(owner, path[-1], value)

    def _put(self, owner: Any, name: str, value: Any) -> None:
        before = vars(owner).get(name, _MISSING)

        def undo() -> None:
            if vars(owner).get(name) is not value:
                # Somebody patched over us: what they keep calls the original in any case.
                return
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        setattr(owner, name, value)
        self._undone.append(undo)


def observed(method: Callable[..., Any], observer: Observer, dialect: Dialect) -> Any:
    """``method``, with each call of it reported."""

    @functools.wraps(method)
    def call_method(*args: Any, **kwargs: Any) -> Any:
        call = observer.begin(dialect, kwargs)
        if call is None:
            return method(*args, **kwargs)
        try:
            result = method(*args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        if inspect.isawaitable(result):
            return _awaited(result, call, dialect)
        return taken(result, call, dialect)

    return call_method


async def _awaited(result: Any, call: Call, dialect: Dialect) -> Any:
    try:
        value = await result
    except BaseException as error:
        call.failed(error)
        raise
    return taken(value, call, dialect)


def taken(result: Any, call: Call, dialect: Dialect) -> Any:
    """What the app gets: the reply itself, or its stream under watch."""
    if getattr(result, "__next__", None) or getattr(result, "__anext__", None):
        gather = call.quietly(dialect.gather)
        stream = None if gather is None else call.quietly(watched, result, call, gather)
        return result if stream is None else stream
    call.took(dialect, result)
    return result
