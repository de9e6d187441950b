"""pi's sessions (and those of agents built on it): rows in, events out."""

from __future__ import annotations

from ctxhealth.readers.pi.reader import PiReader

__all__ = ["PiReader"]
