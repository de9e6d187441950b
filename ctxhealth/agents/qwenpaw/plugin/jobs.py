"""A command's work, done inside QwenPaw's loop where the agent is: by one thread waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from .sdk import client

Work = Callable[[Any], Awaitable[dict[str, Any]]]


@dataclass
class Job:
    """``work(agent)`` changes or reads the agent. ``answers``: the turn goes on to the model;
    then ``clears`` says that it has nothing to tell it: the last message is still unanswered.
    ``token`` marks the turn that was started for it, so that no user's turn is taken for it.
    """

    context: Any
    work: Work
    answers: bool = False
    clears: bool = False
    claimed: bool = False
    token: str = field(default_factory=lambda: uuid4().hex)
    result: Future[dict[str, Any]] = field(default_factory=Future)

    async def execute(self, agent: Any) -> None:
        """Start the command (its fence, and ``started`` on the disk), then do the work.

        What goes wrong is the command's result, never the turn's; only a cancelled turn is passed
        on.
        """
        self.claimed = True
        try:
            await asyncio.to_thread(self.context.start)
            result = await self.work(agent)
        except asyncio.CancelledError:
            self.fail(client.Failed("the turn was stopped while it was carried out"))
            raise
        except BaseException as error:
            self.fail(error)
        else:
            if not self.result.done():
                self.result.set_result(result)

    def fail(self, error: BaseException) -> None:
        if not self.result.done():
            self.result.set_exception(error)
