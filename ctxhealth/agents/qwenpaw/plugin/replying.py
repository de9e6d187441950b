"""The empty-reply fallback (a setting): one retry after a recovery, then a visible warning."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from typing import Any

from .attempts import Asked
from .binding import Binding
from .blocks import TAG, content_of, field, is_request
from .care import Care
from .forcing import compact
from .sdk import engine
from .watch import Watch

_CONTINUES = "loop_continuation"
_COMPLETED = "completed"


def ends_reply(binding: Binding, item: Any) -> bool:
    """Whether the reply is over as far as the agent is concerned."""
    if binding.reply_end is None or not isinstance(item, binding.reply_end):
        return False
    reason = getattr(item, "finished_reason", None)
    return str(getattr(reason, "value", reason)) == _COMPLETED


def last_reply(watch: Watch, agent: Any) -> Any:
    """What came last from the model, as the engine judges it."""
    said = {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0, "data": 0}
    if not watch.empties:
        context = agent.state.context
        last = context[-1] if context else None
        said = content_of(field(last, "content"))
    usage = watch.last_usage or {}
    return engine.Reply(
        text="x" * min(1, said["text_chars"]), calls=said["tool_calls"],
        thinking=bool(said["thinking_chars"]), data=bool(said["data"]),
        prompt=usage.get("input"), completion=usage.get("output"),
    )  # fmt: skip


class Replies:
    """One turn's answer to empty replies."""

    def __init__(self, watch: Watch, agent: Any, binding: Binding, care: Care) -> None:
        self.watch, self.agent, self.binding, self.care = watch, agent, binding, care
        self.warning: str | None = None

    async def again(self) -> bool:
        """At the end of a reply: True where the agent shall ask the model once more."""
        if not self.watch.empties:
            self.watch.episode = None
            return False
        waiting = any(is_request(message) for message in self.agent.state.context)
        episode, verdict = engine.judge_reply(
            self.watch.episode or engine.Episode(), last_reply(self.watch, self.agent),
            waiting_user=waiting,
        )  # fmt: skip
        self.watch.episode = episode
        if verdict.action == "warn":
            self.warning = verdict.warning
        if verdict.action != "recover_and_retry":
            return False
        await self._recover()
        self._continue(verdict.continuation or engine.replies.CONTINUATION)
        return True

    async def _recover(self) -> None:
        """Its failure changes nothing: the retry is made anyway."""
        try:
            await compact(self.agent, Asked("reactive", without_model=True))
        except Exception as error:
            self.watch.chat.note(f"No recovery before the retry: {error}", "warning")

    def _continue(self, text: str) -> None:
        made = self.binding
        self.agent.state.context.append(
            made.message(
                name="user",
                role="user",
                content=[made.text(text=text)],
                metadata={TAG: _CONTINUES},
            )
        )

    async def shown(self, end: Any) -> AsyncGenerator[Any, None]:
        """The warning as a text of this reply, saved with it."""
        made, text = self.binding, self.warning or ""
        reply, block = str(getattr(end, "reply_id", "")), uuid.uuid4().hex
        yield made.text_start(reply_id=reply, block_id=block)
        yield made.text_delta(reply_id=reply, block_id=block, delta=text)
        yield made.text_end(reply_id=reply, block_id=block)
        self.agent._save_to_context([made.text(text=text)])
        turn = self.watch.turn
        if turn is not None:
            turn.shown = True
        self.watch.chat.agent_stopped(
            "the model answered nothing twice", count=self.watch.empties, limit=2
        )

    def worded(self, item: Any) -> Any:
        """The final message with the warning in it."""
        if self.warning is None or not isinstance(item, self.binding.message):
            return item
        item.content = [self.binding.text(text=self.warning)]
        return item
