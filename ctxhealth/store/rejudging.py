"""Stored chats under changed rules: folded again from their logs, where that makes a difference.

The state in a running server's memory is not reached from here, so the server must be stopped.
"""

from __future__ import annotations

from ctxhealth.store.models import Chat
from ctxhealth.store.through import call, installed
from ctxhealth.store.verify import CHUNK, chat_problems, rebuild


def rejudge() -> int:
    """Judge every chat by the present rules; how many came out differently.

    Raises RuntimeError where a writer runs in this process.
    """
    if installed() is not None:
        raise RuntimeError("chats are judged again while no writer runs")
    changed = 0
    for pk in Chat.objects.order_by("id").values_list("id", flat=True).iterator(CHUNK):
        problems, _ = chat_problems(pk)
        if problems:
            call(rebuild, pk)
            changed += 1
    return changed
