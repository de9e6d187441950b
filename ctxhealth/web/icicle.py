"""The structure of a history as an icicle to scale: parts, then blocks, then the largest item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ctxhealth.core.model import Block, Structure
from ctxhealth.web.format import number, percent, plural
from ctxhealth.web.strip import KIND_TITLES

ROW = 26  # pixels
GAP = 2
LABEL_ROOM = 0.9  # per cent of the width that one letter of a label needs
MAX_BLOCKS = 200  # more than a screen can tell apart are drawn as one
_PART_OF = {"bulk": "bulks", "topic": "topics"}
_ORDER = ("system", "tools", "extras", "bulks", "topics", "current", "unassigned")


@dataclass(frozen=True, slots=True)
class Cell:
    """One block: ``x`` and ``width`` in per cent, ``level`` counts rows from the top."""

    kind: str
    level: int
    x: float
    width: float
    label: str
    says: str
    shade: bool = False


def cells_of(structure: Structure) -> list[Cell]:
    """Cells from left to right; blocks of unknown size take no room and are not drawn."""
    known = [block for block in structure.blocks if block.tokens]
    total = sum(block.tokens or 0 for block in known)
    cells: list[Cell] = []
    x = 0.0
    for part in _ORDER:
        blocks = [b for b in known if _PART_OF.get(b.kind, b.kind) == part]
        tokens = sum(block.tokens or 0 for block in blocks)
        if not tokens:
            continue
        width = 100 * tokens / total
        cells.append(_part_cell(part, blocks, tokens, total, x, width))
        if part in ("bulks", "topics", "current"):
            cells.extend(_block_cells(part, _bounded(blocks), tokens, total, x, width))
        x += width
    return cells


def _part_cell(
    part: str, blocks: Sequence[Block], tokens: int, total: int, x: float, width: float
) -> Cell:
    title = KIND_TITLES[part]
    counted = plural(len(blocks), part[:-1]) if part in ("bulks", "topics") else title
    says = f"{counted}: {number(tokens)} tokens, {percent(tokens, total)} of the structure"
    return Cell(part, 0, x, width, f"{counted} {number(tokens)}", says)


def _bounded(blocks: list[Block]) -> list[Block]:
    if len(blocks) <= MAX_BLOCKS:
        return blocks
    rest = blocks[MAX_BLOCKS - 1 :]
    merged = Block(
        kind=rest[0].kind,
        id=f"{len(rest)} more",
        tokens=sum(block.tokens or 0 for block in rest),
        title=f"{len(rest)} more",
    )
    return [*blocks[: MAX_BLOCKS - 1], merged]


def _block_cells(
    part: str, blocks: Sequence[Block], tokens: int, total: int, x: float, width: float
) -> Iterator[Cell]:
    for index, block in enumerate(blocks):
        share = width * (block.tokens or 0) / tokens
        name = block.title or (KIND_TITLES["current"] if part == "current" else block.id)
        yield Cell(part, 1, x, share, name, block_says(block, total), index % 2 == 1)
        if block.largest and block.tokens:
            part_width = share * min(1.0, block.largest / block.tokens)
            says = f"largest item of {name}: {number(block.largest)} tokens"
            yield Cell("largest", 2, x, part_width, number(block.largest), says)
        x += share


def block_says(block: Block, total: int) -> str:
    """A block in one line: title, tokens, share, messages, largest item."""
    about = "about " if block.estimate else ""
    said = [
        f"{block.kind} {block.title or block.id}: {about}{number(block.tokens)} tokens",
        f"{percent(block.tokens, total)} of the structure",
    ]
    if block.messages is not None:
        said.append(plural(block.messages, "message"))
    if block.largest is not None:
        said.append(f"largest item {number(block.largest)}")
    return ", ".join(said)


def icicle_svg(structure: Structure) -> SafeString:
    """Every block can take the focus and says what it is; hover and focus fill the read-out."""
    cells = cells_of(structure)
    if not cells:
        return SafeString("")
    levels = 1 + max(cell.level for cell in cells)
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
        ROW,
        cell.says,
        cell.kind + ("2" if cell.shade else ""),
        cell.kind,
        cell.label if cell.width >= LABEL_ROOM * len(cell.label) else "",
    )
