"""Why a file does not become a chat, each as a sentence for the person who brought it."""

from __future__ import annotations


class Refused(Exception):
    """The file is none that can be read, or is too large: nothing was stored."""


class Broken(Exception):
    """Reading ended before the file's end; what came before is stored."""


class Stopped(Exception):
    """The server stops: the rest is read at its next start."""
