"""Where a chat is shown."""

from __future__ import annotations

import json
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

_TIMEOUT_S = 3.0


def chat_page(url: str, token: str, chat: str) -> str:
    """The chat's own address where the token may read it, else the board filtered to it."""
    base = url.replace("ws://", "http://", 1).replace("wss://", "https://", 1)
    found = _ask(base, token, chat)
    return f"{base}/chats/{found}/" if found is not None else f"{base}/?q={quote(chat, safe='')}"


def _ask(base: str, token: str, chat: str) -> int | None:
    request = Request(
        f"{base}/api/v1/chats?q={quote(chat, safe='')}",
        headers={"Authorization": f"Bearer {token}"},
    )
    try:
        with urlopen(request, timeout=_TIMEOUT_S) as answer:
            chats = json.load(answer).get("chats", [])
    except (URLError, OSError, ValueError, AttributeError):
        return None
    ids = [entry.get("id") for entry in chats if entry.get("chat") == chat]
    return ids[0] if len(ids) == 1 and isinstance(ids[0], int) else None
