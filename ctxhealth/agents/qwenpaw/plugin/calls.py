"""One call of the chat model: sent, answered or failed, with what the provider billed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

from .blocks import content_of, field
from .care import Care
from .facts import cap_of, dialect_of
from .failures import failure_of
from .watch import Watch


def usage_of(usage: Any, dialect: str) -> dict[str, Any] | None:
    """The event's usage; all zero, or none at all, is no reading."""
    if usage is None:
        return None
    names = {
        "input": "input_tokens", "output": "output_tokens", "cache_read": "cache_input_tokens",
        "cache_write": "cache_creation_input_tokens",
    }  # fmt: skip
    found = {key: _size(field(usage, name)) for key, name in names.items()}
    if not any(found.values()):
        return None
    for key in ("cache_read", "cache_write"):
        # The frame's default of 0 says nothing about a provider that does not tell.
        if not found[key]:
            del found[key]
    return {"dialect": dialect, **{k: v for k, v in found.items() if v is not None}}


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class Call:
    """Made when the call leaves. Each of ``replied`` and ``failed`` counts once."""

    def __init__(self, watch: Watch, agent: Any, model: Any, local: int | None) -> None:
        self.watch, self.model = watch, model
        self.local = local
        self.begun = time.monotonic()
        self.over = False
        name = getattr(model, "model", None)
        self.name = name if isinstance(name, str) else None
        self.id = watch.chat.request_sent(local=local, max_output=cap_of(agent))

    def replied(self, response: Any) -> None:
        if self.over:
            return
        finish = field(response, "finished_reason")
        finish = str(getattr(finish, "value", finish)) if finish is not None else None
        if finish == "interrupted":
            # A stopped call still ends in a chunk of its own: it is no empty reply.
            self.failed(asyncio.CancelledError("the call was interrupted"))
            return
        self.over = True
        usage = usage_of(field(response, "usage"), dialect_of(self.model))
        content = content_of(field(response, "content"))
        self.watch.chat.model_replied(
            self.id, usage=usage, content=content, finish=finish, model=self.name, ms=self._ms()
        )
        self.watch.last_usage = usage
        self.watch.calibrate(self.local, _billed(usage))
        self._judge(content, usage, finish)

    def _judge(self, content: dict[str, int], usage: dict[str, Any] | None, finish: Any) -> None:
        watch, turn = self.watch, self.watch.turn
        if any(content.values()):
            watch.empties = 0
            if turn is not None:
                turn.shown = bool(content["text_chars"] or content["data"])
            return
        watch.empties += 1
        if turn is not None:
            turn.shown = False
        watch.chat.reply_empty(
            watch.empties, request=self.id, prompt=_billed(usage),
            completion=(usage or {}).get("output"), finish=finish,
        )  # fmt: skip

    def failed(self, error: BaseException) -> None:
        if self.over:
            return
        self.over = True
        self.watch.chat.model_failed(self.id, **failure_of(error), ms=self._ms())

    def _ms(self) -> int:
        return int((time.monotonic() - self.begun) * 1000)


def _billed(usage: dict[str, Any] | None) -> int | None:
    """The whole prompt as the provider counts it."""
    if usage is None or usage.get("input") is None:
        return None
    if usage["dialect"] != "anthropic":
        return int(usage["input"])
    return int(usage["input"]) + int(usage.get("cache_read", 0)) + int(usage.get("cache_write", 0))


async def followed(
    stream: AsyncGenerator[Any, None], call: Call, care: Care
) -> AsyncGenerator[Any, None]:
    """The same stream, chunk for chunk; its last chunk, or its end, is reported."""
    try:
        async for chunk in stream:
            if getattr(chunk, "is_last", False):
                care.run("reply", lambda chunk=chunk: call.replied(chunk))  # type: ignore[misc]
            yield chunk
    except BaseException as error:
        problem = error
        care.run("reply", lambda: call.failed(problem))
        raise
    finally:
        await stream.aclose()
    if not call.over:
        care.run("reply", lambda: call.failed(RuntimeError("the stream ended without an answer")))
