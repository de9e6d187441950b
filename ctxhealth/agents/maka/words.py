"""Maka's words for failures in those of the protocol."""

from __future__ import annotations

from typing import Any

_ERRORS = {
    "Abort": "cancelled", "Auth": "auth", "ContextLength": "overflow", "Network": "network",
    "ProviderBilling": "quota", "ProviderUnavailable": "provider", "RateLimit": "rate_limit",
    "Timeout": "timeout",
}  # fmt: skip
_SUMMARIES = {
    "empty_summary": "empty",
    "malformed_summary_missing_section": "malformed",
    "malformed_summary_too_small_for_fold": "malformed",
    "malformed_summary_truncated": "truncated",
    "output_length": "truncated",
    "input_too_large": "overflow",
    "provider_error": "provider",
    "invalid_provider_state": "malformed",
    "summarizer_failed": "other",
}
# A summary of so few tokens is none.
EMPTY_TOKENS = 4
STRUCTURAL = frozenset({"no_safe_completed_span", "empty_history", "already_compacted"})
INFERRED = "Inferred from the requests: Maka gives no reason for the compactions of a failed turn."


def model_error(attempt: dict[str, Any]) -> str:
    """Of a request that did not succeed."""
    if attempt.get("status") in ("aborted", "interrupted"):
        return "cancelled"
    return _ERRORS.get(str(attempt.get("errorClass")), "other")


def summary_error(attempt: dict[str, Any]) -> str | None:
    """What a summarizer call shows by itself; None where only Maka's decision would tell."""
    if attempt.get("status") != "completed":
        error = model_error(attempt)
        return "other" if error == "cancelled" else error
    output = attempt.get("outputTokens")
    if output is not None and output <= EMPTY_TOKENS:
        return "empty"
    return None


def decided_error(reason: str | None) -> str | None:
    """Of a reason that Maka gives for a compaction that failed open."""
    if reason is None or reason in STRUCTURAL:
        return None
    return _SUMMARIES.get(reason)


def usage_of(attempt: dict[str, Any]) -> dict[str, Any] | None:
    """The provider's usage. Maka puts cached tokens inside the input, whoever the provider is."""
    if attempt.get("usageBasis") != "reported" or attempt.get("inputTokens") is None:
        return None
    return {
        "dialect": "openai", "input": attempt["inputTokens"],
        "output": attempt.get("outputTokens"), "cache_read": attempt.get("cacheReadInputTokens"),
        "reasoning": attempt.get("reasoningTokens"),
    }  # fmt: skip
