"""An operator's work on a chat in which nothing runs.

QwenPaw builds an agent for one turn only. So a turn is started whose agent is handed to the job
before the model is asked; the session is saved as after any turn. QwenPaw's own register of runs
keeps a user's turn and this one apart.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from .jobs import Job
from .keys import Key

if TYPE_CHECKING:
    from .integration import Integration

#: Only seen where a continuation has to be said: otherwise no model reads it.
TEXT = "Continue: answer the last request, or go on with the task."


class NoSuchAgent(Exception):
    """The chat's agent is not in this QwenPaw."""


def workspace_of(workspaces: list[Any], key: Key) -> Any:
    for workspace in workspaces:
        if str(getattr(workspace, "agent_id", "")) == key.agent:
            return workspace
    raise NoSuchAgent(f"there is no agent {key.agent} here")


async def run_of(workspace: Any, key: Key) -> str:
    """The name under which QwenPaw keeps a chat's run."""
    found = await workspace.chat_manager.get_chat_id_by_session(key.session, key.channel, key.user)
    return str(found) if found else f"ctxhealth:{key.id}"


async def run(home: Integration, workspace: Any, key: Key, job: Job, visible: bool) -> bool:
    """Start the turn and wait for it; False where another one runs. ``visible``: as the console
    would start it, so that whoever has the chat open sees the answer."""
    name = await run_of(workspace, key)
    request = _request(home.binding.request, key, job)
    source, payload = await _source(workspace, key, request, visible)
    home.idle[job.token] = job
    tracker = workspace.task_tracker
    try:
        queue, fresh = await tracker.attach_or_start(name, payload, source, owner=workspace)
        if not fresh:
            await tracker.detach_subscriber(name, queue)
            return False
        async with aclosing(tracker.stream_from_queue(queue, name)) as events:
            async for _ in events:
                if job.answers and job.result.done():
                    break
    finally:
        home.idle.pop(job.token, None)
    job.fail(RuntimeError("QwenPaw ended the turn before the agent was ready; see its log"))
    return True


def _request(made: Any, key: Key, job: Job) -> Any:
    said = {"role": "user", "type": "message", "content": [{"type": "text", "text": TEXT}]}
    return made(
        input=[said], session_id=key.session, user_id=key.user, channel=key.channel, stream=True,
        ctxhealth_job=job.token,
    )  # fmt: skip


async def _source(workspace: Any, key: Key, request: Any, visible: bool) -> tuple[Any, Any]:
    if visible and key.channel == "console":
        console = await workspace.channel_manager.get_channel("console")
        if console is not None:
            return console.stream_one, request

    async def quiet(payload: Any) -> AsyncGenerator[str, None]:
        async for _ in workspace.stream_query(payload):
            # A generator by its word: nobody listens to this run.
            if False:
                yield ""

    return quiet, request
