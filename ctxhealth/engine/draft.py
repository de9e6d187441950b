"""A history that is being made smaller: cells in units, a running total, and the steps taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .history import Bulk, History, Item, Topic
from .keep import KeepRules
from .plan import Cut, Step, StepName
from .shorten import Sizer


@dataclass(eq=False, slots=True)
class Cell:
    """One item in its place, and what may be done to it.

    ``verbatim`` items are never touched (head anchor, last user message, open calls). ``stays``
    says that it may not leave its unit, though it may be shortened. ``bound`` is the last unit
    that its calls or results reach into: it can only leave when that one is folded.
    """

    item: Item
    unit: int = 0
    bound: int = 0
    verbatim: bool = False
    stays: bool = False
    gone: bool = False
    shortened: bool = False


@dataclass(eq=False, slots=True)
class Unit:
    """A topic, the current topic, or a bulk whose summary is blank so that its items are sent."""

    source: Topic | Bulk
    cells: list[Cell]
    foldable: bool = False
    changed: bool = False
    #: Where a blank bulk stands among the bulks.
    slot: int | None = None

    @property
    def title(self) -> str:
        return (self.source.title or "") if isinstance(self.source, Topic) else ""


@dataclass(eq=False)
class Group:
    """Units whose cells would share one extract, with the cells that leave with each."""

    parts: list[tuple[Unit, list[Cell]]] = field(default_factory=list)
    tokens: int = 0

    def add(self, unit: Unit, cells: list[Cell]) -> None:
        self.parts.append((unit, cells))
        self.tokens += sum(cell.item.tokens for cell in cells)

    @property
    def units(self) -> list[Unit]:
        return [unit for unit, _ in self.parts]

    @property
    def cells(self) -> list[Cell]:
        return [cell for _, cells in self.parts for cell in cells]


@dataclass(eq=False)
class Tally:
    """What one step touches while it runs."""

    touched: list[str] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    made: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Draft:
    """The state of one plan. ``total`` is in the plan's scope and follows every change.

    ``bulks`` holds a unit where a bulk is blank. ``leftover`` is what no extract could shrink.
    """

    target: int
    rules: KeepRules
    sizer: Sizer
    total: int
    units: list[Unit]
    active: int
    bulks: list[Bulk | Unit]
    bulk_ids: set[str]
    exact: bool = True
    steps: list[Step] = field(default_factory=list)
    leftover: Group | None = None
    folded: list[str] = field(default_factory=list)
    evicted: int = 0

    @property
    def met(self) -> bool:
        return self.total <= self.target

    @property
    def excess(self) -> int:
        return self.total - self.target

    def cells(self) -> Iterator[Cell]:
        """Yield every cell that is still there, oldest first."""
        for unit in self.units:
            for cell in unit.cells:
                if not cell.gone:
                    yield cell

    @contextmanager
    def step(self, level: int, name: StepName) -> Iterator[Tally]:
        """Record a step, unless it touched nothing."""
        tally, before = Tally(), self.total
        yield tally
        if tally.touched:
            touched = tuple(dict.fromkeys(tally.touched))
            ids = (touched, tuple(tally.cuts), tuple(tally.made))
            self.steps.append(Step(level, name, before, self.total, *ids))

    def replace(self, tally: Tally, cell: Cell, item: Item | None) -> None:
        """Put a smaller item in a cell's place; ``None`` leaves it as it is."""
        if item is None:
            return
        tally.touched.append(cell.item.id)
        tally.cuts.append(Cut(cell.item.id, cell.item.tokens, item.tokens))
        self.exact = self.exact and item.text is not None
        self.total -= cell.item.tokens - item.tokens
        self.units[cell.unit].changed = cell.shortened = True
        cell.item = item

    def remove(self, group: Group) -> None:
        """Take a group's cells out of their units."""
        self.total -= group.tokens
        for cell in group.cells:
            cell.gone = self.units[cell.unit].changed = True
            self.folded.append(cell.item.id)

    def result(self, history: History) -> History:
        """Return the history as it stands now."""
        self._open_blanks()
        *past, current = self.units
        topics = [topic for unit in past for topic in _topics_of(unit)]
        now = _topics_of(current)
        return History(
            system=history.system,
            tools=history.tools,
            extras=history.extras,
            bulks=tuple(bulk for entry in self.bulks for bulk in _bulks_of(entry)),
            topics=tuple(topics),
            current=now[0] if now else Topic(history.current.id, (), history.current.title),
        )

    def _open_blanks(self) -> None:
        """A blank bulk that keeps some of its items becomes a topic, and so do those behind it.

        Bulks are sent before topics: left as bulks, the later ones would overtake it.
        """
        opened = False
        for unit in self.units:
            if isinstance(unit.source, Bulk):
                rest = any(not cell.gone for cell in unit.cells)
                opened = opened or (unit.changed and rest)
                unit.changed = unit.changed or opened


def _bulks_of(entry: Bulk | Unit) -> list[Bulk]:
    if isinstance(entry, Bulk):
        return [entry]
    unchanged = isinstance(entry.source, Bulk) and not entry.changed
    return [entry.source] if unchanged and isinstance(entry.source, Bulk) else []


def _topics_of(unit: Unit) -> list[Topic]:
    """Return what a unit still sends verbatim; a blank bulk that changed is a topic from then."""
    if not unit.changed:
        return [unit.source] if isinstance(unit.source, Topic) else []
    items = tuple(cell.item for cell in unit.cells if not cell.gone)
    return [Topic(unit.source.id, items, unit.title or None)] if items else []
