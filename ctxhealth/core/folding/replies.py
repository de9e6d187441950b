"""Replies: what is empty and why, what is unusable, what the user cannot see (domain 6)."""

from __future__ import annotations

from ctxhealth.core.state import ChatState
from ctxhealth.wire.events import MessageAdded, ModelReplied, ReplyEmpty

_CAPPED = frozenset({"length", "max_tokens", "max_output_tokens"})


def take_reply(state: ChatState, event: ModelReplied, prompt: int | None, at: int) -> bool:
    """Judge one reply's content. True when it was meaningful, False when empty or unknown."""
    content = event.content
    if content is None:
        return False
    replies = state.replies
    meaningful = bool(content.text_chars or content.tool_calls or content.data)
    capped = event.finish in _CAPPED
    thinking = content.thinking_chars > 0
    if meaningful or (thinking and not capped):
        replies.nothing_visible = not meaningful
        _meaningful(state, at)
        return True
    replies.empty_row += 1
    replies.empty_total += 1
    replies.empty_prompt = prompt
    replies.empty_completion = event.usage.output if event.usage else None
    replies.empty_cause = _cause(state, prompt, capped and thinking, event.usage is not None)
    return False


def on_reply_empty(state: ChatState, event: ReplyEmpty) -> None:
    """The agent's own count of empty replies in a row; the same ones are not counted twice."""
    replies = state.replies
    if event.n > replies.empty_row:
        replies.empty_total += event.n - replies.empty_row
        replies.empty_row = event.n
    if (event.n and replies.empty_cause is None) or event.prompt is not None:
        prompt = event.prompt if event.prompt is not None else replies.empty_prompt
        replies.empty_prompt = prompt
        capped = event.finish in _CAPPED and bool(event.completion)
        known = prompt is not None or replies.empty_cause not in (None, "unknown")
        cause = _cause(state, prompt, capped, known)
        if cause != "provider_empty" or replies.empty_cause is None:
            replies.empty_cause = cause
    if event.completion is not None:
        replies.empty_completion = event.completion


def _cause(state: ChatState, prompt: int | None, capped: bool, usage: bool) -> str:
    """First that holds; an overflow is never inferred without a provider's number."""
    budget = state.limits.budget
    if prompt is not None and budget is not None and prompt >= budget:
        return "window_full"
    if capped:
        return "output_cap"
    if not usage or prompt is None:
        return "unknown"
    return "provider_empty"


def _meaningful(state: ChatState, at: int) -> None:
    replies = state.replies
    replies.empty_row = 0
    replies.empty_cause = None
    replies.last_at = at
    state.turns.replies += 1


def unusable_message(state: ChatState, kind: str) -> None:
    replies = state.replies
    replies.unusable_row += 1
    replies.unusable_kind = kind


def usable_message(state: ChatState, event: MessageAdded) -> None:
    """A usable assistant message ends the row; the same one again is a repetition."""
    replies = state.replies
    replies.unusable_row = 0
    if event.hash is None or event.kind not in ("text", "tool_call"):
        return
    if event.hash == replies.repeat_hash:
        replies.repeats += 1
    else:
        replies.repeat_hash, replies.repeats = event.hash, 1
