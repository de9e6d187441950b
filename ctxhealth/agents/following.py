"""What enters a history, told by comparing the lists of messages that an app sends.

An app that keeps its own list sends all of it with each call. What was not there before is new;
where something that was there is gone, the app cut its history, and the whole order is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """Knows the list of the last call. ``mint`` makes an id that no other member has."""

    def __init__(self, mint: Callable[[str], str]) -> None:
        self._mint = mint
        self._members: list[Member] = []
        self._ids: list[str] = []

    def compare(self, members: Sequence[Member]) -> tuple[list[tuple[str, Member]], bool]:
        """What was not in the list before, with new ids; and whether something is gone."""
        members = list(members[-_MOST:])
        same = _common(self._members, members)
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


def _common(before: Sequence[Member], now: Sequence[Member]) -> int:
    """How many members the two lists have in common at their beginning."""
    for number, (one, other) in enumerate(zip(before, now, strict=False)):
        if one != other:
            return number
    return min(len(before), len(now))
