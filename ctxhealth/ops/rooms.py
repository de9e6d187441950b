"""Draws which room of the code imports which, for docs/architecture.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "ctxhealth"
START = "<!-- rooms: start (manage.py rooms --write) -->"
END = "<!-- rooms: end -->"


def imports_of(source: str) -> set[str]:
    """Rooms of this package that a module's source imports, at whatever depth."""
    found = set()
    for name in _names(ast.parse(source)):
        head, _, rest = name.partition(".")
        if head == PACKAGE and rest:
            found.add(rest.partition(".")[0])
    return found


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            # "from ctxhealth import runtime" names its rooms one by one.
            if node.module == PACKAGE:
                yield from (f"{PACKAGE}.{alias.name}" for alias in node.names)
            else:
                yield node.module


def rooms(root: Path) -> dict[str, set[str]]:
    """Room -> rooms it imports. A room is a folder, or a module, directly in the package."""
    found: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.py")):
        first = path.relative_to(root).parts[0]
        room = first.removesuffix(".py")
        if room != "__init__" and "migrations" not in path.parts:
            found.setdefault(room, set()).update(imports_of(path.read_text("utf-8")) - {room})
    return {room: others & found.keys() for room, others in found.items()}


def drawing(root: Path) -> str:
    """The map as a Markdown table, with what needs least first."""
    found = rooms(root)
    ordered = sorted(found, key=lambda room: (len(_reach(room, found)), room))
    lines = ["| room | imports |", "|---|---|"]
    lines += [
        f"| `{room}` | {', '.join(f'`{other}`' for other in sorted(found[room])) or 'nothing'} |"
        for room in ordered
    ]
    return "\n".join(lines)


def _reach(room: str, found: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = [room]
    while todo:
        for other in found[todo.pop()] - seen:
            seen.add(other)
            todo.append(other)
    return seen


def redrawn(document: str, root: Path) -> str:
    """The document with the map between its two marks replaced. ValueError without marks."""
    before, start, rest = document.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError("the document has no place for the map of rooms")
    return f"{before}{START}\n\n{drawing(root)}\n\n{END}{after}"
