"""Calls without results and results without calls, as a provider's refusal names them."""

from __future__ import annotations

import re

from ctxhealth.core.folding.context import Context
from ctxhealth.core.parts import TEXT, History
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import clip
from ctxhealth.wire.events import ModelFailed

_ABOUT_PAIRS = re.compile(
    r"tool[ _-]?(?:use|call|result|output)|function[ _-]?call|call_id", re.IGNORECASE
)
_ID = re.compile(r"\b(?:toolu|call|fc|tooluse)[_-][A-Za-z0-9_-]{4,80}\b")


def named_pair(state: ChatState, event: ModelFailed) -> None:
    """A refusal that speaks of calls and results names the broken pair."""
    text = event.detail or ""
    if not _ABOUT_PAIRS.search(text):
        return
    found = _ID.search(text)
    state.history.orphan_named = found.group(0) if found else clip(text, TEXT)


def overdue_calls(state: ChatState, context: Context) -> None:
    """A chat request leaves while a call older than its timeout has no result."""
    history = state.history
    timeout = context.rules.thresholds.call_ms
    for call, opened in history.open_calls.items():
        old = context.at - opened.at > timeout and not opened.settled
        if old and call not in history.orphan_calls and len(history.orphan_calls) < 8:
            history.orphan_calls.append(call)


def accept_pairs(history: History) -> None:
    """The provider accepted a request: whatever looked torn apart is whole enough."""
    history.orphan_named = None
    for call in history.orphan_calls:
        if call in history.open_calls:
            history.open_calls[call].settled = True
    if history.orphan_calls or history.orphan_results:
        history.orphan_calls, history.orphan_results = [], []
    history.orphan_cut = False
