"""Laying a history out as a draft, and marking what must stay."""

from __future__ import annotations

from collections.abc import Iterable

from .draft import Cell, Draft, Unit
from .history import Bulk, History, Item, Scope
from .keep import KeepRules
from .pairs import groups, open_calls
from .shorten import Sizer


def lay_out(history: History, target: int, scope: Scope, rules: KeepRules, sizer: Sizer) -> Draft:
    """Return a draft of the history with every cell marked; raises as ``History.total`` does."""
    bulks: list[Bulk | Unit] = [
        Unit(bulk, _cells(bulk.sent()), foldable=True) if bulk.is_blank else bulk
        for bulk in history.bulks
    ]
    blank = [entry for entry in bulks if isinstance(entry, Unit)]
    for slot, entry in enumerate(bulks):
        if isinstance(entry, Unit):
            entry.slot = slot
    turns = [Unit(topic, _cells(topic.items)) for topic in (*history.topics, history.current)]
    spoken = [unit for unit in turns if unit.cells]
    for unit in spoken[: max(0, len(spoken) - rules.turns)]:
        unit.foldable = True
    units = blank + turns
    _mark(units)
    return Draft(
        target=target,
        rules=rules,
        sizer=sizer,
        total=history.total(scope),
        units=units,
        active=units.index(spoken[-1]) if spoken else len(units) - 1,
        bulks=bulks,
        bulk_ids={bulk.id for bulk in history.bulks},
    )


def _cells(items: Iterable[Item]) -> list[Cell]:
    return [Cell(item) for item in items]


def _mark(units: list[Unit]) -> None:
    cells: list[Cell] = []
    for index, unit in enumerate(units):
        for cell in unit.cells:
            cell.unit = index
        cells.extend(unit.cells)
    _mark_user_messages(units)
    unanswered = open_calls([cell.item for cell in cells])
    for cell in cells:
        cell.verbatim = cell.verbatim or not unanswered.isdisjoint(cell.item.calls)
    tied: list[Cell] = []
    for cell in cells:
        if cell.item.calls or cell.item.answers:
            tied.append(cell)
        else:
            # By itself at once: a list kept for each would be most of what is allocated here.
            _mark_group([cell], units)
    for group in groups([cell.item for cell in tied]):
        _mark_group([tied[index] for index in group], units)


def _mark_group(members: list[Cell], units: list[Unit]) -> None:
    """A call and its results stay or go together: one that must stay holds the others."""
    bound = max(cell.unit for cell in members)
    stays = not units[bound].foldable or any(
        cell.verbatim or (cell.item.is_result and not cell.item.read) for cell in members
    )
    for cell in members:
        cell.bound, cell.stays = bound, stays


def _mark_user_messages(units: list[Unit]) -> None:
    """Mark the first and the last user message, with images or data sent in the same breath."""
    places = [
        (unit, index)
        for unit in units
        for index, cell in enumerate(unit.cells)
        if cell.item.is_user_message
    ]
    for unit, index in places[:1]:
        _mark_message(unit.cells[index:])
    for unit, index in places[-1:]:
        _mark_message(unit.cells[index::-1])


def _mark_message(cells: list[Cell]) -> None:
    """Mark a run of user items with at most one text: the next text is another message."""
    texts = 0
    for cell in cells:
        texts += cell.item.kind == "text"
        if not cell.item.is_user_message or texts > 1:
            return
        cell.verbatim = True
