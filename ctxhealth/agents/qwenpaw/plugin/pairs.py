"""Calls without results and results without calls, in QwenPaw's messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .blocks import blocks_of, field
from .sdk import engine

_CALLS = ("tool_call", "tool_use")


@dataclass(frozen=True)
class Broken:
    """Ids of calls that nothing answers, and of results that answer nothing."""

    closed: frozenset[str]
    dropped: frozenset[str]


def broken(context: Iterable[Any]) -> Broken:
    """A result that stands before its call answers nothing."""
    made: set[str] = set()
    answered: set[str] = set()
    dropped: set[str] = set()
    for message in context:
        for block in blocks_of(message):
            kind, name = field(block, "type"), str(field(block, "id"))
            if kind in _CALLS:
                made.add(name)
            elif kind == "tool_result":
                (answered if name in made else dropped).add(name)
    return Broken(frozenset(made - answered), frozenset(dropped))


def repair(context: Iterable[Any], found: Broken, result: Any) -> None:
    """In place. ``result`` makes a result block."""
    for message in context:
        kept: list[Any] = []
        for block in blocks_of(message):
            kind, name = field(block, "type"), str(field(block, "id"))
            if kind == "tool_result" and name in found.dropped:
                continue
            kept.append(block)
            if kind in _CALLS and name in found.closed:
                text = engine.repair.NO_RESULT
                made = result(
                    id=name, name=str(field(block, "name")), output=text, state="interrupted"
                )
                kept.append(made)
                if not isinstance(block, dict) and hasattr(block, "state"):
                    block.state = "finished"
        if isinstance(field(message, "content"), list):
            message.content = kept
