"""Codex's rollouts: rows in, events out; one chat per thread."""

from __future__ import annotations

from ctxhealth.readers.codex.reader import CodexReader

__all__ = ["CodexReader"]
