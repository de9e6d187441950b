"""The agent's side of ctxhealth: report what happens to a context, take the operator's commands.

    from ctxhealth.client import Reporter

    reporter = Reporter("http://127.0.0.1:8000", "ctxh_...", agent="my-agent", outbox="my.outbox")
    chat = reporter.chat("chat-1", model="gpt-5", window=400_000)

Needs ``websockets`` and the standard library; never Django. Python 3.10 or newer.
"""

from __future__ import annotations

from .chat import Chat
from .context import Cancelled, CommandContext, Expired, Failed, Refused
from .http import PostFailed, post_events
from .redact import redact
from .reporter import Reporter
from .runtime import live

__all__ = [
    "Cancelled",
    "Chat",
    "CommandContext",
    "Expired",
    "Failed",
    "PostFailed",
    "Refused",
    "Reporter",
    "live",
    "post_events",
    "redact",
]
