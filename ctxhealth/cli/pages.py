"""Where a chat is shown."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

_TIMEOUT_S = 3.0
_FORBIDDEN = 403


class Pages:
    """A server's addresses for one agent's chats.

    A token that may not read is refused once and not asked for again: ``memory`` is the file
    that remembers its hash between two runs, None for this run only.
    """

    def __init__(self, url: str, token: str, agent: str, memory: Path | None = None) -> None:
        url = url.replace("ws://", "http://", 1).replace("wss://", "https://", 1)
        self._base, self._token, self._agent = url, token, agent
        self._memory = memory
        self._hash = blake2b(f"{url}\n{token}".encode(), digest_size=16).hexdigest()
        self._may_read = self._hash not in _lines(memory)

    def of(self, chat: str) -> str:
        """The chat's own address where the token may read it, else the board filtered to it."""
        found = self._ask(chat) if self._may_read else None
        if found is not None:
            return f"{self._base}/chats/{found}/"
        return f"{self._base}/?{urlencode({'q': chat})}"

    def _ask(self, chat: str) -> int | None:
        request = Request(
            f"{self._base}/api/v1/chats?{urlencode({'q': chat, 'agent': self._agent})}",
            headers={"Authorization": f"Bearer {self._token}"},
        )
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:
                chats = json.load(answer).get("chats", [])
        except HTTPError as error:
            if error.code == _FORBIDDEN:
                self._refused()
            return None
        except (URLError, OSError, ValueError, AttributeError):
            return None
        ids = [each.get("id") for each in chats if each.get("chat") == chat]
        return ids[0] if len(ids) == 1 and isinstance(ids[0], int) else None

    def _refused(self) -> None:
        self._may_read = False
        if self._memory is None:
            return
        try:
            with open(self._memory, "a", encoding="ascii") as file:
                file.write(f"{self._hash}\n")
        except OSError:
            # It is asked once more the next time; nothing else depends on it.
            return


def _lines(path: Path | None) -> set[str]:
    try:
        return set() if path is None else set(path.read_text("ascii").split())
    except (OSError, UnicodeDecodeError):
        return set()
