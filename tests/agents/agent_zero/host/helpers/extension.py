"""Extension points by folder, for named points and around decorated functions."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

ROOTS: list[Path] = []
_UNSET = object()
_found: dict[str, list[type]] = {}


class Extension:
    def __init__(self, agent: Any, **kwargs: Any) -> None:
        self.agent = agent


def forget() -> None:
    _found.clear()


def classes(point: str) -> list[type]:
    if point not in _found:
        files: dict[str, Path] = {}
        for root in ROOTS:
            for folder in sorted(root.glob(f"*/extensions/python/{point}")):
                for path in folder.glob("*.py"):
                    files.setdefault(path.name, path)
        _found[point] = [_load(files[name]) for name in sorted(files)]
    return _found[point]


def _load(path: Path) -> type:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass)]
    return next(kind for kind in kinds if kind is not Extension and issubclass(kind, Extension))


async def call_extensions_async(point: str, agent: Any = None, **kwargs: Any) -> None:
    for kind in classes(point):
        result = kind(agent).execute(**kwargs)
        if inspect.isawaitable(result):
            await result


def call_extensions_sync(point: str, agent: Any = None, **kwargs: Any) -> None:
    for kind in classes(point):
        if inspect.isawaitable(kind(agent).execute(**kwargs)):
            raise ValueError(f"{point}: awaitable in a synchronous point")


def extensible(func: Callable[..., Any]) -> Callable[..., Any]:
    """What a start point puts into the payload is used, what an end point leaves is given back."""
    base = "/".join(["_functions", *func.__module__.split("."), *func.__qualname__.split(".")])

    def payload(args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
        agent = next((one for one in args if type(one).__name__ == "Agent"), None)
        known = agent is not None and bool(agent.__dict__)
        data = {"args": args, "kwargs": kwargs, "result": _UNSET, "exception": None}
        return agent if known else None, data

    def outcome(data: dict[str, Any]) -> Any:
        if isinstance(data["exception"], BaseException):
            raise data["exception"]
        return None if data["result"] is _UNSET else data["result"]

    @wraps(func)
    async def run_async(*args: Any, **kwargs: Any) -> Any:
        agent, data = payload(args, kwargs)
        await call_extensions_async(f"{base}/start", agent, data=data)
        try:
            data["result"] = func(*data["args"], **data["kwargs"])
            data["result"] = await data["result"]
        except Exception as error:
            data["exception"] = error
        await call_extensions_async(f"{base}/end", agent, data=data)
        return outcome(data)

    @wraps(func)
    def run_sync(*args: Any, **kwargs: Any) -> Any:
        agent, data = payload(args, kwargs)
        call_extensions_sync(f"{base}/start", agent, data=data)
        try:
            data["result"] = func(*data["args"], **data["kwargs"])
        except Exception as error:
            data["exception"] = error
        call_extensions_sync(f"{base}/end", agent, data=data)
        return outcome(data)

    return run_async if asyncio.iscoroutinefunction(func) else run_sync
