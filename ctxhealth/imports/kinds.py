"""What a file is, by its first bytes; what it is instead, where it cannot be read."""

from __future__ import annotations

from typing import NamedTuple

from ctxhealth.imports.errors import Refused
from ctxhealth.readers.registry import Format, readable, sniff
from ctxhealth.store.bundles import looks_like_bundle

# How files begin that people drop by mistake.
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive: unpack it and bring the session files in it"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive: unpack it first (only gzip is unpacked here)"),
    (b"\xfd7zXZ", "an xz archive: unpack it first (only gzip is unpacked here)"),
    (b"BZh", "a bzip2 archive: unpack it first (only gzip is unpacked here)"),
    (b"7z\xbc\xaf", "a 7z archive: unpack it first (only gzip is unpacked here)"),
    (b"\x1f\x8b", "a gzip archive inside a gzip archive: unpack it first"),
    (b"SQLite format 3", "a SQLite database, not a session file"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"\x7fELF", "a program"),
    (b"<!DOCTYPE", "a web page"),
    (b"<html", "a web page"),
    (b"\xff\xfe", "UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text: save it as UTF-8"),
)
_TAR = (257, b"ustar")


class Bundle(NamedTuple):
    """An incident exported by an installation of this product."""

    what: str = "an incident bundle"


def kind_of(head: bytes) -> Format | Bundle:
    """The format of a file that begins with ``head``. Raises Refused with what it is instead."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        raise Refused("The file is empty.")
    for begins, what in _OTHERS:
        if text.startswith(begins):
            raise Refused(f"This is {what}.")
    if head[_TAR[0] :].startswith(_TAR[1]):
        raise Refused("This is a tar archive: unpack it and bring the session files in it.")
    if looks_like_bundle(text):
        return Bundle()
    found = sniff(head)
    if found is None:
        raise Refused(_unknown(head))
    if found.make is None:
        raise Refused(f"This is {found.what}, which cannot be read yet. Read are: {readable()}.")
    return found


def _unknown(head: bytes) -> str:
    bad = _not_utf8(head)
    if bad is not None:
        return f"This is no UTF-8 text: byte {bad + 1:,} is none that can stand there."
    return f"This is none of the session files that can be read: {readable()}."


def _not_utf8(head: bytes) -> int | None:
    """Where the text stops being one; a character that the head cuts is none."""
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start if error.start < len(head) - 4 else None
    nul = head.find(b"\x00")
    return nul if nul >= 0 else None
