"""Levels 1, 2 and 6 of the fallback: items that stay in their place, but shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .draft import Cell, Draft, Tally
from .history import Item
from .shorten import LEAST_TOKENS, SIGNED_KINDS, cut_item, is_pointer, point_to

#: Rounds of lowering: each leaves out what proved impossible to shorten to the height before.
_MOST_ROUNDS = 4


def cut_large_messages(draft: Draft) -> None:
    """Level 1: head and tail of messages above their share of the target, largest first."""
    large = [
        (cell, limit)
        for cell in draft.cells()
        for limit in (_large_limit(draft, cell),)
        if cell.item.tokens > limit and _may_cut(draft, cell) and cell.item.read
    ]
    large.sort(key=lambda entry: -entry[0].item.tokens)
    with draft.step(1, "large_message") as tally:
        for cell, limit in large:
            if draft.met:
                return
            _cut_to(draft, tally, cell, max(limit, cell.item.tokens - draft.excess))


def _large_limit(draft: Draft, cell: Cell) -> int:
    rules = draft.rules
    share = rules.large_in_current if cell.unit == draft.active else rules.large_in_topics
    return max(LEAST_TOKENS, int(share * draft.target))


def point_to_old_results(draft: Draft) -> None:
    """Level 2: tool results of past turns, oldest first, to lines with name and size."""
    old = _all_but_newest(draft, [cell for cell in draft.cells() if cell.item.is_result])
    with draft.step(2, "prune") as tally:
        _point(draft, tally, (cell for cell in old if cell.unit != draft.active))


def shrink_current_turn(draft: Draft) -> None:
    """Level 6: the current turn's acknowledged results, then the largest items, then unread ones.

    Turns that the rules keep, and what had to stay behind in folded topics, count as current for
    the largest items: nothing else is left to free.
    """
    results = [
        cell for cell in draft.cells() if cell.unit == draft.active and _is_acknowledged(cell.item)
    ]
    with draft.step(6, "prune") as tally:
        _point(draft, tally, _all_but_newest(draft, results))
    _cut_largest(draft, lambda item: not _is_unread(item))
    _cut_largest(draft, _is_unread)


def _is_unread(item: Item) -> bool:
    return item.is_result and not item.read


def _is_acknowledged(item: Item) -> bool:
    return item.is_result and item.read


def _all_but_newest(draft: Draft, results: list[Cell]) -> list[Cell]:
    return results[: max(0, len(results) - draft.rules.results)]


def _point(draft: Draft, tally: Tally, cells: Iterable[Cell]) -> None:
    for cell in cells:
        if draft.met:
            return
        if _may_cut(draft, cell) and cell.item.read:
            draft.replace(tally, cell, point_to(cell.item, draft.sizer))


def _cut_largest(draft: Draft, wanted: Callable[[Item], bool]) -> None:
    """Lower the largest items to one common height that frees what is missing."""
    cells = [cell for cell in draft.cells() if wanted(cell.item) and _may_cut(draft, cell)]
    with draft.step(6, "large_message") as tally:
        for _ in range(_MOST_ROUNDS):
            cells = [cell for cell in cells if cell.item.tokens > LEAST_TOKENS]
            if draft.met or not cells:
                return
            cells = _lower(draft, tally, cells)


def _lower(draft: Draft, tally: Tally, cells: list[Cell]) -> list[Cell]:
    """Lower cells once; returns those that may go lower still, without the ones that cannot."""
    cells.sort(key=lambda cell: -cell.item.tokens)
    height = waterline([cell.item.tokens for cell in cells], draft.excess)
    left = []
    for cell in cells:
        if draft.met:
            break
        if cell.item.tokens <= height or _cut_to(draft, tally, cell, height):
            left.append(cell)
    return left


def waterline(sizes: list[int], excess: int) -> int:
    """Return the height to which sizes (largest first) must be lowered to free ``excess``.

    Never below LEAST_TOKENS: then not everything that is missing can be freed.
    """
    above = 0
    for count, size in enumerate(sizes, start=1):
        above += size
        height = (above - excess) // count
        if count == len(sizes) or height >= sizes[count]:
            return max(LEAST_TOKENS, height)
    return LEAST_TOKENS


def _may_cut(draft: Draft, cell: Cell) -> bool:
    item = cell.item
    if cell.verbatim or item.kind in SIGNED_KINDS or is_pointer(item.text):
        return False
    return draft.rules.cut_calls or not item.is_call


def _cut_to(draft: Draft, tally: Tally, cell: Cell, limit: int) -> bool:
    """Shorten a cell's item; False where that would not make it smaller."""
    item = cut_item(cell.item, limit, draft.sizer, draft.rules.head_share)
    draft.replace(tally, cell, item)
    return item is not None
