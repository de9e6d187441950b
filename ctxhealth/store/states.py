"""Folded states in memory, least recently used first out, owned by whoever writes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from ctxhealth.core.state import ChatState


@dataclass(slots=True)
class Held:
    """A chat's state as of ``chat_seq``; ``unsaved`` events were folded since a checkpoint.

    ``saved``: the columns that seldom change as its row has them; None where that is not known.
    """

    pk: int
    project: int
    agent: int
    external_id: str
    chat_seq: int
    version: int
    conn_no: int
    state: ChatState
    unsaved: int = 0
    agent_name: str = ""
    saved: tuple[int | str | bool | None, ...] | None = None


class StateCache:
    """At most ``cap`` states. Not thread safe: the writer's thread alone touches it."""

    def __init__(self, cap: int = 2_000) -> None:
        self.cap = cap
        self.hits = self.misses = self.evictions = 0
        self._by_pk: OrderedDict[int, Held] = OrderedDict()
        self._pks: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self._by_pk)

    def __iter__(self) -> Iterator[Held]:
        return iter(list(self._by_pk.values()))

    def get(self, pk: int) -> Held | None:
        held = self._by_pk.get(pk)
        if held is None:
            self.misses += 1
            return None
        self.hits += 1
        self._by_pk.move_to_end(pk)
        return held

    def pk_of(self, agent: int, external_id: str) -> int | None:
        return self._pks.get((agent, external_id))

    def put(self, held: Held) -> None:
        self._by_pk[held.pk] = held
        self._pks[(held.agent, held.external_id)] = held.pk

    def drop(self, pk: int) -> None:
        """Forget a state: it was folded in a transaction that failed, or is too old."""
        held = self._by_pk.pop(pk, None)
        if held is not None:
            self._pks.pop((held.agent, held.external_id), None)

    def surplus(self) -> list[Held]:
        """Those to evict now, oldest first; they stay until ``drop``."""
        count = len(self._by_pk) - self.cap
        if count <= 0:
            return []
        self.evictions += count
        oldest = iter(self._by_pk.values())
        return [next(oldest) for _ in range(count)]

    def clear(self) -> None:
        self._by_pk.clear()
        self._pks.clear()
