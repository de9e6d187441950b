"""Calls and results that belong together: open calls, orphans, groups that stay or go as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .history import Item


def answered_ids(items: Iterable[Item]) -> set[str]:
    return {call for item in items for call in item.answers}


def open_calls(items: Sequence[Item]) -> set[str]:
    """Return the ids of calls that no item answers."""
    made = {call for item in items for call in item.calls}
    return made - answered_ids(items)


def orphan_results(items: Sequence[Item]) -> set[str]:
    """Return the ids that are answered although no item calls them."""
    made = {call for item in items for call in item.calls}
    return answered_ids(items) - made


def groups(items: Sequence[Item]) -> list[list[int]]:
    """Return the positions of items that are tied by call ids, one list a group, linear in size.

    Parallel calls in one message tie all of their results together. Items without ids are groups
    of one.
    """
    parent = list(range(len(items)))
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        for call in (*item.calls, *item.answers):
            _join(parent, index, first.setdefault(call, index))
    found: dict[int, list[int]] = {}
    for index in range(len(items)):
        found.setdefault(_root(parent, index), []).append(index)
    return list(found.values())


def _root(parent: list[int], index: int) -> int:
    while parent[index] != index:
        parent[index] = parent[parent[index]]
        index = parent[index]
    return index


def _join(parent: list[int], left: int, right: int) -> None:
    low, high = sorted((_root(parent, left), _root(parent, right)))
    parent[high] = low
