"""A history's structure in events that each fit their limit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .limits import EVENT_BYTES

_LISTS = ("bulks", "topics", "order")
# Of 64 KiB, leaving room for the envelope, the scalars and characters that grow when redacted.
_PART_BYTES = EVENT_BYTES - 8_192
_MOST_PARTS = 1_000


def parts_of(structure: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of each part, in order; one part without ``part`` where that is enough.

    Sizes that are not lists stand in every part. Lists are cut, never reordered.
    """
    scalars = {key: value for key, value in structure.items() if key not in _LISTS}
    pages = list(_pages(structure))[:_MOST_PARTS]
    if len(pages) <= 1:
        return [{**scalars, **(pages[0] if pages else {})}]
    return [
        {**scalars, **page, "part": number, "parts": len(pages)}
        for number, page in enumerate(pages, 1)
    ]


def _pages(structure: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    page: dict[str, Any] = {}
    size = 0
    for name in _LISTS:
        entries = structure.get(name)
        if not isinstance(entries, (list, tuple)):
            continue
        page[name] = []
        for entry in entries:
            weight = _weight(entry)
            if size + weight > _PART_BYTES and size:
                yield page
                page, size = {name: []}, 0
            page[name].append(entry)
            size += weight
    if page:
        yield page


def _weight(entry: Any) -> int:
    try:
        return len(json.dumps(entry, default=str, ensure_ascii=False).encode("utf-8", "replace"))
    except Exception:
        # Whatever a host put there; the event itself says what could be made of it.
        return 1_024
