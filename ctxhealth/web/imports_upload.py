"""Uploads straight into the spool: each byte is written once and never held."""

from __future__ import annotations

import hashlib
from typing import Any, BinaryIO, NamedTuple

from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest

from ctxhealth.imports.limits import FILES
from ctxhealth.imports.spool import Spool

# Read from the request at once.
CHUNK = 256 * 1024


class Brought(NamedTuple):
    """One file of the form. ``spooled`` is empty where ``refused`` says why it was not kept."""

    name: str
    size: int
    sha256: str
    spooled: str
    refused: str = ""

    def close(self) -> None:
        """Django closes what a request brought; this is closed already."""


class SpoolHandler(FileUploadHandler):
    """``most`` is the largest file in bytes; a larger one, and what is too many, is passed over."""

    chunk_size = CHUNK

    def __init__(self, request: HttpRequest, folder: Spool, most: int) -> None:
        super().__init__(request)
        self._spool = folder
        self._most = most
        self._count = 0
        self._open: BinaryIO | None = None
        self._name = self._spooled = self._refused = ""
        self._written = 0
        self._digest = hashlib.sha256()
        self._kept: list[str] = []

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._name = str(self.file_name or "")[:300]
        self._count += 1
        self._written, self._refused, self._spooled = 0, "", ""
        self._digest = hashlib.sha256()
        if self._count > FILES:
            self._refused = f"One drop takes {FILES} files: bring the others in the next."
            return
        try:
            self._spooled, self._open = self._spool.begin()
        except OSError:
            self._refused = _NO_ROOM

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self._written += len(raw_data)
        if self._open is None:
            return
        if self._written > self._most:
            self._give_up(f"It has more than {self._most // 1_000_000:,} MB, the limit here.")
            return
        self._digest.update(raw_data)
        try:
            self._open.write(raw_data)
        except OSError:
            self._give_up(_NO_ROOM)

    def file_complete(self, file_size: int) -> Brought:  # type: ignore[override]
        try:
            self._close()
        except OSError:
            self._give_up(_NO_ROOM)
        spooled, self._spooled = self._spooled, ""
        if spooled:
            self._kept.append(spooled)
        digest = self._digest.hexdigest() if spooled else ""
        return Brought(self._name, file_size, digest, spooled, self._refused)

    def keep(self) -> None:
        """What came is somebody else's now."""
        self._kept.clear()

    def forget(self) -> None:
        """Remove what nobody took over."""
        self._give_up("")
        for name in self._kept:
            self._spool.remove(name)

    def upload_interrupted(self) -> None:
        """The browser went away."""
        self.forget()

    def _give_up(self, why: str) -> None:
        self._refused = why
        try:
            self._close()
        except OSError:
            self._open = None
        self._spool.remove(self._spooled)
        self._spooled = ""

    def _close(self) -> None:
        file, self._open = self._open, None
        if file is not None:
            file.close()


_NO_ROOM = "The server's disk takes no more: tell an admin."
