"""Level 3 of the fallback: topics become bulks."""

from __future__ import annotations

import math

from .draft import Cell, Draft, Group, Tally, Unit
from .history import Bulk
from .shorten import CHARS_PER_TOKEN, extract


def fold_topics(draft: Draft) -> None:
    """Fold the oldest topics, and bulks with a blank summary, to short extracts.

    A topic that an extract would not shrink waits for the next ones and shares theirs. A group is
    tried again only when it has doubled, which keeps the whole linear.
    """
    waiting: dict[int, list[Cell]] = {}
    group, next_try = Group(), 0
    with draft.step(3, "topics_to_bulk") as tally:
        for index, unit in enumerate(draft.units):
            if draft.met:
                return
            ready = _ready(unit, index, waiting) if unit.foldable else []
            if not ready:
                continue
            group.add(unit, ready)
            if group.tokens < next_try:
                continue
            folded = _fold(draft, tally, group)
            next_try = 0 if folded else max(1, 2 * group.tokens)
            group = Group() if folded else group
        if group.parts and not draft.met and not _fold(draft, tally, group):
            draft.leftover = group


def _ready(unit: Unit, index: int, waiting: dict[int, list[Cell]]) -> list[Cell]:
    """Return the cells that may leave now; those tied to a later unit wait for that one."""
    ready = waiting.pop(index, [])
    for cell in unit.cells:
        if cell.stays:
            continue
        if cell.bound > index:
            waiting.setdefault(cell.bound, []).append(cell)
        else:
            ready.append(cell)
    return ready


def _fold(draft: Draft, tally: Tally, group: Group) -> bool:
    """Replace a group by one bulk; False, and nothing changed, where that would not shrink it."""
    bulk = _extract_bulk(draft, group)
    if bulk.tokens >= group.tokens:
        return False
    draft.remove(group)
    draft.total += bulk.tokens
    draft.exact = draft.exact and bulk.text is not None
    draft.bulk_ids.add(bulk.id)
    _place(draft, group.units, bulk)
    tally.touched.extend(unit.source.id for unit in group.units)
    tally.made.append(bulk.id)
    return True


def _extract_bulk(draft: Draft, group: Group) -> Bulk:
    rules = draft.rules
    parts = [(unit.title, [cell.item for cell in cells]) for unit, cells in group.parts]
    text = extract(parts, rules.extract_chars, rules.head_share)
    name = _free_id(draft, f"fallback:{group.parts[0][0].source.id}")
    if text is None:
        return Bulk(name, math.ceil(rules.extract_chars / CHARS_PER_TOKEN), records=len(parts))
    written = [item for _, items in parts for item in items if item.text]
    tokens = sum(item.tokens for item in written)
    chars = sum(len(item.text or "") for item in written)
    return Bulk(name, draft.sizer.size(text, tokens, chars), text, records=len(parts))


def _free_id(draft: Draft, wanted: str) -> str:
    name, number = wanted, 2
    while name in draft.bulk_ids:
        name, number = f"{wanted}~{number}", number + 1
    return name


def _place(draft: Draft, units: list[Unit], bulk: Bulk) -> None:
    """Put a bulk where the oldest blank one among its units stands, else behind the bulks."""
    slot = units[0].slot
    if slot is None:
        draft.bulks.append(bulk)
    else:
        draft.bulks[slot] = bulk
