"""Claude Code's transcripts: rows in, events out; one chat per session and per sub-agent."""

from __future__ import annotations

from ctxhealth.readers.claude_code.reader import ClaudeCodeReader

__all__ = ["ClaudeCodeReader"]
