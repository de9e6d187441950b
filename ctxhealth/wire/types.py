"""The closed vocabularies and the bounded scalars that events are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

# A token, byte or message count. 2**53 - 1 is the largest integer that every JSON reader keeps.
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Millis = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Ident = Annotated[str, Meta(min_length=1, max_length=200)]
Word = Annotated[str, Meta(max_length=200)]
Sentence = Annotated[str, Meta(max_length=4_000)]
Text = Annotated[str, Meta(max_length=60_000)]
Ratio = Annotated[float, Meta(ge=0, le=1)]

Scope = Literal["prompt", "history"]
Purpose = Literal["chat", "utility"]
Role = Literal["system", "user", "assistant", "tool"]
ItemKind = Literal["text", "tool_call", "tool_result", "image", "summary", "data", "reasoning"]
Unusable = Literal["malformed", "repeated"]
TurnKind = Literal["user", "task", "continuation"]
TurnOutcome = Literal["answered", "silent", "stopped", "error", "cancelled"]
Dialect = Literal["anthropic", "openai", "codex", "gemini", "llamacpp", "otel"]
ModelError = Literal[
    "overflow", "rate_limit", "quota", "timeout", "network", "auth",
    "invalid", "too_large", "filtered", "provider", "cancelled", "other",
]  # fmt: skip
SummarizerError = Literal[
    "quota", "provider", "network", "timeout", "overflow", "empty",
    "malformed", "truncated", "rate_limit", "auth", "other",
]  # fmt: skip
CompactionTrigger = Literal["proactive", "reactive", "manual", "forced", "idle"]
Phase = Literal["pre_turn", "mid_turn", "between_turns"]
Step = Literal[
    "large_message", "attention", "topics_to_bulk", "bulk_merge", "prune",
    "summary", "native", "fallback", "evict",
]  # fmt: skip
LatchKind = Literal[
    "structural", "already_compacted", "summarizer", "cooldown", "lock_held",
    "exhausted", "no_gain", "open_call", "inferred",
]  # fmt: skip
LatchScope = Literal["step", "send", "turn", "chat", "process"]
ClearedHow = Literal["operator", "input_changed", "turn_end", "time", "success", "restart"]
CommandKind = Literal[
    "compact_fallback", "clear_latch", "compact_summarize", "continue", "stop_turn",
    "rescue", "repair_pairs", "restore_backup", "snapshot", "ping",
]  # fmt: skip
CommandState = Literal[
    "queued", "sent", "received", "waiting", "started",
    "succeeded", "failed", "refused", "expired", "cancelled", "unknown",
]  # fmt: skip
NoteLevel = Literal["debug", "info", "warning", "error"]
