"""What a block of a history is called where its agent gives it no title."""

from __future__ import annotations

from collections.abc import Iterable

from ctxhealth.core.model import Block
from ctxhealth.web.format import number, percent, plural

CURRENT = "current topic"


def names_of(blocks: Iterable[Block]) -> list[str]:
    """A name per block; untitled ones are counted within their kind: an id tells nobody much."""
    names: list[str] = []
    seen: dict[str, int] = {}
    for block in blocks:
        seen[block.kind] = seen.get(block.kind, 0) + 1
        names.append(_name(block, seen[block.kind]))
    return names


def _name(block: Block, place: int) -> str:
    if block.title:
        return block.title
    if block.kind == "current":
        return CURRENT
    if block.kind not in ("bulk", "topic"):
        return block.kind
    name = f"{block.kind} {place}"
    return name if block.kind == "topic" else name + _held(block)


def _held(bulk: Block) -> str:
    return "" if bulk.messages is None else f" · {plural(bulk.messages, 'topic')}"


def block_says(block: Block, name: str, total: int) -> str:
    """A block in one line: name, tokens, share, messages, largest item."""
    about = "about " if block.estimate else ""
    kind = f"{block.kind} " if block.title and block.kind in ("bulk", "topic") else ""
    said = [
        f"{kind}{name}: {about}{number(block.tokens)} tokens",
        f"{percent(block.tokens, total)} of the structure",
    ]
    if block.messages is not None and block.kind != "bulk":
        said.append(plural(block.messages, "message"))
    if block.largest is not None:
        said.append(f"largest item {number(block.largest)}")
    return ", ".join(said)
