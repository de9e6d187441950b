"""Which chat: QwenPaw tells chats apart by agent, channel, user and session."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote


@dataclass(frozen=True)
class Key:
    agent: str
    channel: str
    user: str
    session: str

    @property
    def id(self) -> str:
        """The chat's id on the server, from which ``parse`` gives the key back."""
        return "/".join(quote(part, safe="") for part in self._parts())

    def _parts(self) -> tuple[str, str, str, str]:
        return self.agent, self.channel, self.user, self.session

    @classmethod
    def parse(cls, id: str) -> Key | None:
        """None where the id is none of ours, or was too long to be kept whole."""
        parts = [unquote(part) for part in id.split("/")]
        if len(parts) != 4 or not parts[0] or not parts[3]:
            return None
        key = cls(*parts)
        return key if key.id == id else None


def key_of(context: object) -> Key:
    """The key of a runtime hook's context."""
    request = getattr(context, "request", None)
    session = str(getattr(context, "session_id", "") or "")
    return Key(
        str(getattr(context, "agent_id", "") or "default"),
        str(getattr(request, "channel", "") or "console"),
        str(getattr(request, "user_id", "") or session),
        session,
    )
