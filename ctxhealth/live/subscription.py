"""What a browser's socket asks for, from its query string."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

MAX_QUERY = 2_000
MAX_ID = 2**63 - 1
VIEWS = ("board", "chat", "agents")


class BadSubscription(ValueError):
    """The query string names no view; the text says what is wrong with which field."""


@dataclass(frozen=True)
class Subscription:
    """``view`` is board, chat (of ``chat``) or agents; ``filters`` are the page's own."""

    view: str
    chat: int | None = None
    filters: tuple[tuple[str, str], ...] = ()


def parse_subscription(query: bytes) -> Subscription:
    if len(query) > MAX_QUERY:
        raise BadSubscription(f"query: longer than {MAX_QUERY} bytes")
    try:
        pairs = parse_qsl(query.decode("ascii"), max_num_fields=50)
    except (UnicodeDecodeError, ValueError) as error:
        raise BadSubscription("query: not a query string") from error
    named = dict(pairs)
    view, _, number = named.pop("view", "").partition(":")
    if view not in VIEWS:
        raise BadSubscription(f"view: must be one of {', '.join(VIEWS)}")
    return Subscription(
        view=view,
        chat=_chat_id(number) if view == "chat" else None,
        filters=tuple(sorted(named.items())),
    )


def _chat_id(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > MAX_ID:
        raise BadSubscription("view: chat needs the number of a chat, as in chat:12")
    return int(text)
