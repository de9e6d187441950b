"""Usage as the provider billed it, from wherever this agent lets it through; else unknown.

A chat call of the newer lines carries it in its result. Of a utility call only litellm is told: a
callback there is matched to the call by the texts that were sent. A chat call over the older
endpoint is broken off as soon as its JSON is complete, so nobody ever learns its usage.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import host

Told = dict[str, Any] | None
_WAIT_S = 0.5
_MOST = 256
_LOGGER = "litellm.integrations.custom_logger"


@dataclass(eq=False)
class Expected:
    """One utility call under way. ``then`` takes the usage once the reply is in."""

    key: int
    told: Told = None
    then: Callable[[Told], None] | None = None
    done: bool = False


class _Desk:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting: dict[int, list[Expected]] = {}
        self.listening = False

    def put(self, expected: Expected) -> None:
        with self.lock:
            self.waiting.setdefault(expected.key, []).append(expected)
            if len(self.waiting) > _MOST:
                del self.waiting[next(iter(self.waiting))]

    def drop(self, expected: Expected) -> None:
        with self.lock:
            rest = [one for one in self.waiting.get(expected.key, []) if one is not expected]
            if rest:
                self.waiting[expected.key] = rest
            else:
                self.waiting.pop(expected.key, None)

    def tell(self, key: int, told: Told) -> None:
        with self.lock:
            expected = next((e for e in self.waiting.get(key, []) if e.told is None), None)
            if expected is not None:
                expected.told = told
        if expected is not None and expected.then is not None:
            self.finish(expected)

    def finish(self, expected: Expected) -> None:
        """Tell once, whoever comes first: the callback or the clock."""
        with self.lock:
            done, expected.done = expected.done, True
        self.drop(expected)
        if not done and expected.then is not None:
            expected.then(expected.told)


_DESK = _Desk()


def expect(system: str, message: str) -> Expected:
    """A call with these texts is about to be made."""
    expected = Expected(hash((system.strip(), message.strip())))
    if _DESK.listening:
        _DESK.put(expected)
    return expected


def forget(expected: Expected) -> None:
    _DESK.drop(expected)


def when_known(expected: Expected, then: Callable[[Told], None]) -> None:
    """Call ``then`` with the usage, at the latest in half a second, then with None."""
    expected.then = then
    if expected.told is not None or not _DESK.listening:
        _DESK.finish(expected)
        return
    clock = threading.Timer(_WAIT_S, _DESK.finish, (expected,))
    clock.daemon = True
    clock.start()


def told_by(result: Any) -> Told:
    """The usage that a chat call's result carries, in the protocol's words, or None."""
    return normalised(getattr(result, "usage", None))


def normalised(usage: Any) -> Told:
    """Either of OpenAI's spellings; None where it says nothing."""
    read = _reader(usage)
    given = read("input_tokens") if read("input_tokens") is not None else read("prompt_tokens")
    wrote = read("output_tokens")
    wrote = wrote if wrote is not None else read("completion_tokens")
    if not given and not wrote:
        return None
    details = _reader(_either(read, "input_tokens_details", "prompt_tokens_details"))
    thought = _reader(_either(read, "output_tokens_details", "completion_tokens_details"))
    told = {
        "dialect": "openai",
        "input": given,
        "output": wrote,
        "cache_read": details("cached_tokens"),
        "reasoning": thought("reasoning_tokens"),
        "total": read("total_tokens"),
    }
    return {key: value for key, value in told.items() if value is not None}


def _either(read: Callable[[str], Any], *names: str) -> Any:
    return next((value for name in names if (value := read(name)) is not None), None)


def _reader(value: Any) -> Callable[[str], Any]:
    if isinstance(value, Mapping):
        return value.get
    return lambda name: getattr(value, name, None)


def listen() -> Any:
    """Ask litellm for the usage of every call; what ``hush`` takes, or None without litellm."""
    litellm = _litellm()
    base = host.attribute(_LOGGER, "CustomLogger") if litellm is not None else None
    if litellm is None or base is None:
        return None
    callback = type("CtxhealthUsage", (base,), {"async_log_success_event": _succeeded})()
    litellm.callbacks.append(callback)
    _DESK.listening = True
    return callback


def hush(callback: Any) -> None:
    """Undo ``listen``."""
    _DESK.listening = False
    for name in ("callbacks", "success_callback", "_async_success_callback"):
        found = getattr(_litellm(), name, None)
        if isinstance(found, list):
            found[:] = [one for one in found if one is not callback]


def _litellm() -> Any:
    """Only where the agent has imported it: that takes seconds."""
    return sys.modules.get("litellm")


async def _succeeded(
    self: Any, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
) -> None:
    """Called by keyword: the names of the parameters are litellm's."""
    try:
        told = normalised(getattr(response_obj, "usage", None))
        if told is not None:
            _DESK.tell(_key(kwargs.get("messages")), told)
    except Exception:
        return


def _key(messages: Any) -> int:
    texts = {"system": "", "user": ""}
    for message in messages if isinstance(messages, list) else []:
        role = str(message.get("role"))
        if role in texts:
            texts[role] += _text(message.get("content"))
    return hash((texts["system"].strip(), texts["user"].strip()))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return str(content or "")
