"""The structure of a history as an icicle to scale: parts, then blocks, then the largest item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ctxhealth.core.model import Block, Structure
from ctxhealth.web.blocks import block_says, names_of
from ctxhealth.web.format import number, percent
from ctxhealth.web.strip import KIND_TITLES

ROW = 26  # pixels
GAP = 2
LABEL_ROOM = 0.9  # per cent of the width that one letter of a label needs
MAX_BLOCKS = 200  # more than a screen can tell apart are drawn as one
_PART_OF = {"bulk": "bulks", "topic": "topics"}
_ORDER = ("system", "tools", "extras", "bulks", "topics", "current", "unassigned")


@dataclass(frozen=True, slots=True)
class Cell:
    """One block: ``x`` and ``width`` in per cent, ``level`` counts rows from the top.

    ``rows`` is how many of them it takes: a part that is one block stands over both.
    """

    kind: str
    level: int
    x: float
    width: float
    label: str
    says: str
    shade: bool = False
    rows: int = 1


class Named(NamedTuple):
    block: Block
    name: str

    @property
    def tokens(self) -> int:
        return self.block.tokens or 0


def cells_of(structure: Structure) -> list[Cell]:
    """Cells from left to right; blocks of unknown size take no room and are not drawn."""
    names = names_of(structure.blocks)
    known = [Named(*each) for each in zip(structure.blocks, names, strict=True) if each[0].tokens]
    total = sum(each.tokens for each in known)
    cells: list[Cell] = []
    x = 0.0
    for part in _ORDER:
        blocks = [each for each in known if _PART_OF.get(each.block.kind, each.block.kind) == part]
        tokens = sum(each.tokens for each in blocks)
        if tokens:
            width = 100 * tokens / total
            cells.extend(_part_cells(part, blocks, tokens, total, x, width))
            x += width
    return cells


def _part_cells(
    part: str, blocks: Sequence[Named], tokens: int, total: int, x: float, width: float
) -> Iterator[Cell]:
    if len(blocks) == 1:
        yield from _single(part, blocks[0], total, x, width)
        return
    counted = f"{len(blocks)} {KIND_TITLES[part]}"
    says = f"{counted}: {number(tokens)} tokens, {percent(tokens, total)} of the structure"
    yield Cell(part, 0, x, width, f"{counted} {number(tokens)}", says)
    for index, each in enumerate(_bounded(blocks)):
        share = width * each.tokens / tokens
        says = block_says(each.block, each.name, total)
        yield Cell(part, 1, x, share, each.name, says, index % 2 == 1)
        yield from _largest(each, x, share)
        x += share


def _single(part: str, only: Named, total: int, x: float, width: float) -> Iterator[Cell]:
    name = only.name if part in ("bulks", "topics") else KIND_TITLES[part]
    says = block_says(only.block, only.name, total)
    yield Cell(part, 0, x, width, f"{name} {number(only.tokens)}", says, rows=2)
    yield from _largest(only, x, width)


def _largest(each: Named, x: float, width: float) -> Iterator[Cell]:
    largest = each.block.largest
    if largest and each.tokens:
        says = f"largest item of {each.name}: {number(largest)} tokens"
        yield Cell("largest", 2, x, width * min(1.0, largest / each.tokens), number(largest), says)


def _bounded(blocks: Sequence[Named]) -> Sequence[Named]:
    if len(blocks) <= MAX_BLOCKS:
        return blocks
    rest = blocks[MAX_BLOCKS - 1 :]
    merged = Block(
        kind=rest[0].block.kind,
        id="",
        tokens=sum(each.tokens for each in rest),
        title=f"{len(rest)} more",
    )
    return [*blocks[: MAX_BLOCKS - 1], Named(merged, f"{len(rest)} more")]


def height_of(structure: Structure) -> int:
    """Of the drawing, in pixels; 0 where there is nothing to draw."""
    return max((cell.level + cell.rows for cell in cells_of(structure)), default=0) * (ROW + GAP)


def icicle_svg(structure: Structure) -> SafeString:
    """Every block can take the focus and says what it is; hover and focus fill the read-out."""
    cells = cells_of(structure)
    if not cells:
        return SafeString("")
    levels = max(cell.level + cell.rows for cell in cells)
    return format_html(
        '<svg class="icicle" height="{}" role="group" aria-label="Structure of the history">'
        "{}</svg>",
        levels * (ROW + GAP),
        format_html_join("", _CELL, (_cell_values(cell) for cell in cells)),
    )


_CELL = (
    '<svg class="cell" x="{}" y="{}" width="{}" height="{}" tabindex="0" role="img" '
    'aria-label="{}"><rect class="s-{}" width="100%" height="100%"/>'
    '<text class="in-{}" x="5" y="17">{}</text></svg>'
)


def _cell_values(cell: Cell) -> tuple[str, int, str, int, str, str, str, str]:
    return (
        f"{cell.x:.4g}%",
        cell.level * (ROW + GAP),
        f"{cell.width:.4g}%",
        cell.rows * (ROW + GAP) - GAP,
        cell.says,
        cell.kind + ("2" if cell.shade else ""),
        cell.kind,
        cell.label if cell.width >= LABEL_ROOM * len(cell.label) else "",
    )
