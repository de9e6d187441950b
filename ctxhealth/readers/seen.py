"""The last ids that were read, so that a history written again is not counted again."""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from hashlib import blake2b

SEEN_IDS = 32_768


class Seen:
    """Remembers the newest ``limit`` ids as 64-bit hashes, about 100 bytes each."""

    def __init__(self, limit: int = SEEN_IDS) -> None:
        self._limit = limit
        self._ids: dict[int, None] = {}

    def again(self, id: str) -> bool:
        """Whether ``id`` was here before; it is remembered from now on."""
        digest = blake2b(id.encode("utf-8", "replace"), digest_size=8).digest()
        key = int.from_bytes(digest, "little")
        if key in self._ids:
            return True
        self._ids[key] = None
        if len(self._ids) > self._limit:
            del self._ids[next(iter(self._ids))]
        return False

    def snapshot(self) -> str:
        """The hashes, oldest first, as base64."""
        return b64encode(array("Q", self._ids).tobytes()).decode("ascii")

    def restore(self, text: str) -> None:
        values = array("Q")
        values.frombytes(b64decode(text))
        self._ids = dict.fromkeys(values)
