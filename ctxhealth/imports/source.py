"""The bytes of a file that was brought, unpacked where it is gzip; never more than asked for."""

from __future__ import annotations

import zlib
from pathlib import Path
from types import TracebackType

from ctxhealth.imports.errors import Broken

GZIP = b"\x1f\x8b"
_PIECE = 256 * 1024
# zlib: with a gzip header around it.
_GZIP_BITS = 31


class Source:
    """Read from left to right; ``most`` bounds what a packed file may unpack to."""

    def __init__(self, path: Path, most: int) -> None:
        self._file = open(path, "rb")  # noqa: SIM115  closed by ``close``
        self.packed = self._file.read(2) == GZIP
        self._most = most
        self.rewind()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._file.close()

    def rewind(self) -> None:
        self._file.seek(0)
        self._unpacker = zlib.decompressobj(_GZIP_BITS) if self.packed else None
        self._waiting = b""
        self._given = 0
        self._fault: Broken | None = None

    @property
    def taken(self) -> int:
        """Bytes of the file itself that were taken."""
        return self._file.tell()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, none at the end. Raises Broken for a damaged or huge archive."""
        if self._unpacker is None:
            return self._file.read(size)
        if self._fault is not None:
            raise self._fault
        found = self._as_far_as_it_goes(size)
        self._given += len(found)
        if self._given > self._most:
            raise Broken(f"It unpacks to more than {self._most // 1_000_000:,} MB, the limit here.")
        return found

    def _as_far_as_it_goes(self, size: int) -> bytes:
        """What stands before a fault is read first; the next read tells of it."""
        parts: list[bytes] = []
        left = size
        try:
            while left and (part := self._unpacked(left)):
                parts.append(part)
                left -= len(part)
        except Broken as fault:
            if not parts:
                raise
            self._fault = fault
        return b"".join(parts)

    def _unpacked(self, most: int) -> bytes:
        """Some bytes; none only at the end of the last member."""
        assert self._unpacker is not None
        while True:
            if self._unpacker.eof and not self._next_member():
                return b""
            piece = self._waiting or self._file.read(_PIECE)
            try:
                found = self._unpacker.decompress(piece, most)
            except zlib.error as error:
                raise Broken("The gzip archive is damaged.") from error
            self._waiting = self._unpacker.unconsumed_tail
            if found:
                return found
            if not piece and not self._unpacker.eof:
                raise Broken("The gzip archive is cut off: its end is missing.")

    def _next_member(self) -> bool:
        """An archive may be several behind each other; anything else behind it is left out."""
        assert self._unpacker is not None
        rest = self._unpacker.unused_data + self._waiting
        while len(rest) < len(GZIP) and (more := self._file.read(_PIECE)):
            rest += more
        if not rest.startswith(GZIP):
            return False
        self._unpacker, self._waiting = zlib.decompressobj(_GZIP_BITS), rest
        return True
