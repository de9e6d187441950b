"""How far a session that somebody brought was read, so that the next file of it goes on there."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """``seq`` events were told of the first ``offset`` bytes, whose sha256 is ``digest``;
    ``reader`` is the reader's state, packed."""

    seq: int
    offset: int
    digest: str
    reader: bytes
