"""What enters a history, told by comparing the lists of messages that an app sends.

An app that keeps its own list sends all of it with each call. What was not there before is new;
where something that was there is gone, the app cut its history, and the whole order is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxhealth.client import Chat

_MOST = 20_000


@dataclass(frozen=True)
class Member:
    """One message, or one part of one, as it is sent."""

    role: str
    kind: str = "text"
    text: str | None = None
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    name: str | None = None

    @property
    def is_user(self) -> bool:
        return self.role == "user" and self.kind in ("text", "image", "data")


class Follower:
    """Knows the list of the last call. ``mint`` makes an id that no other member has.

    A message that is the very object of last time, with the very content, is not read again.
    """

    def __init__(self, mint: Callable[[str], str]) -> None:
        self._mint = mint
        self._seen: list[tuple[Any, Any, int]] = []
        self._members: list[Member] = []
        self._ids: list[str] = []

    def compare(
        self, messages: Sequence[Any], parts: Callable[[Any], Iterable[Member]]
    ) -> tuple[list[tuple[str, Member]], bool]:
        """What was not in the list before, with new ids; and whether something is gone."""
        members, known = self._read(messages[-_MOST:], parts)
        same = _common(self._members, members, known)
        left: dict[Member, list[str]] = {}
        for member, id in zip(self._members[same:], self._ids[same:], strict=True):
            left.setdefault(member, []).append(id)
        ids, fresh = self._ids[:same], list[tuple[str, Member]]()
        for member in members[same:]:
            kept = left.get(member)
            if kept:
                ids.append(kept.pop(0))
                continue
            ids.append(self._mint("m"))
            fresh.append((ids[-1], member))
        self._members, self._ids = members, ids
        return fresh, any(left.values())

    def _read(
        self, messages: Sequence[Any], parts: Callable[[Any], Iterable[Member]]
    ) -> tuple[list[Member], int]:
        """The members of the whole list, and how many of them are those of last time."""
        old, number, known = self._seen, 0, 0
        for (before, content, size), message in zip(old, messages, strict=False):
            if before is not message or content is not read(message, "content"):
                break
            number, known = number + 1, known + size
        seen, members = old[:number], self._members[:known]
        for message in messages[number:]:
            made = list(parts(message))
            seen.append((message, read(message, "content"), len(made)))
            members += made
        self._seen = seen
        return members, known

    def order(self) -> list[dict[str, Any]]:
        """The whole list as a snapshot tells it."""
        return [
            {
                "id": id, "role": member.role, "kind": member.kind,
                **({"calls": list(member.calls)} if member.calls else {}),
                **({"answers": list(member.answers)} if member.answers else {}),
            }
            for id, member in zip(self._ids, self._members, strict=True)
        ]  # fmt: skip


def tell(chat: Chat, id: str, member: Member, turn: str | None) -> None:
    chat.message_added(
        id, member.role, member.kind, text=member.text, calls=member.calls or None,
        answers=member.answers or None, name=member.name, turn=turn,
    )  # fmt: skip


def read(value: Any, name: str) -> Any:
    """A field of an object or of a mapping, None where it has none."""
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)


def _common(before: Sequence[Member], now: Sequence[Member], start: int) -> int:
    """How many members the two lists have in common at their beginning, ``start`` for certain."""
    for number in range(start, min(len(before), len(now))):
        if before[number] != now[number]:
            return number
    return min(len(before), len(now))
