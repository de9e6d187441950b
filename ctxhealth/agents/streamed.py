"""Streams of a client library that are watched while the app reads them.

The app gets an object that behaves as the stream: it iterates, enters, closes, and hands through
whatever else it is asked for. When the app is done, whichever way, the call has ended.
"""

from __future__ import annotations

from typing import Any

from ctxhealth.agents.observed import Call, Gather


class _Watched:
    def __init__(self, stream: Any, call: Call, gather: Gather) -> None:
        self._stream, self._call, self._gather = stream, call, gather
        self._events: Any = None

    def __getattr__(self, name: str) -> Any:
        if name == "_stream":
            # Asked for before there is one, as copying does.
            raise AttributeError(name)
        return getattr(self._stream, name)

    def __del__(self) -> None:
        self._done()

    def _saw(self, event: Any) -> None:
        self._call.quietly(self._gather.add, event)

    def _done(self) -> None:
        self._call.gathered(self._gather)


class Watched(_Watched):
    """A stream of a synchronous client."""

    def __iter__(self) -> Watched:
        return self

    def __next__(self) -> Any:
        if self._events is None:
            self._events = iter(self._stream)
        try:
            event = next(self._events)
        except StopIteration:
            self._done()
            raise
        except BaseException as error:
            self._call.failed(error)
            raise
        self._saw(event)
        return event

    def __enter__(self) -> Watched:
        self._stream.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        self._done()
        return self._stream.__exit__(*error)

    def close(self) -> Any:
        self._done()
        return self._stream.close()


class AsyncWatched(_Watched):
    """A stream of an asynchronous client."""

    def __aiter__(self) -> AsyncWatched:
        return self

    async def __anext__(self) -> Any:
        if self._events is None:
            self._events = self._stream.__aiter__()
        try:
            event = await self._events.__anext__()
        except StopAsyncIteration:
            self._done()
            raise
        except BaseException as error:
            self._call.failed(error)
            raise
        self._saw(event)
        return event

    async def __aenter__(self) -> AsyncWatched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        self._done()
        return await self._stream.__aexit__(*error)

    async def close(self) -> Any:
        self._done()
        return await self._stream.close()

    async def aclose(self) -> Any:
        await self.close()


def watched(stream: Any, call: Call, gather: Gather) -> Any:
    """``stream`` as the app would have got it, watched; None where it is no stream."""
    if hasattr(stream, "__anext__") or hasattr(stream, "__aiter__"):
        return AsyncWatched(stream, call, gather)
    if hasattr(stream, "__next__"):
        return Watched(stream, call, gather)
    return None
