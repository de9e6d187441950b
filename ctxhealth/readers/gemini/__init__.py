"""Gemini CLI's sessions: rows or one document in, events out; one chat per session."""

from __future__ import annotations

from ctxhealth.readers.gemini.reader import GeminiReader

__all__ = ["GeminiReader"]
