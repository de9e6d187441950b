"""What the latest request was made of, as the parts of the history.

Maka says it in bytes. Tokens are shared out by bytes over what the provider counted, so that the
parts never add up to more than the load; without a count, four bytes are a token.
"""

from __future__ import annotations

from typing import Any

from ctxhealth.agents.maka.known import Known
from ctxhealth.agents.maka.telling import Telling

_BYTES_A_TOKEN = 4
Frame = dict[str, Any]


def compose(to: Telling, found: Frame) -> None:
    """``found``: an available ``context.diagnostics``; each request is composed once.

    One that is newer than what was told of the requests waits until they caught up.
    """
    known, at = to.known, int(found.get("completedAt") or 0)
    composition = found.get("composition")
    if not composition or not known.composed_at < at <= known.answered_at:
        return
    known.composed_at = at
    sizes = {part["kind"]: int(part["bytes"]) for part in composition["segments"]}
    total = sum(sizes.values())
    if not total:
        return
    load = found.get("inputTokens") or total // _BYTES_A_TOKEN
    tokens = {kind: load * size // total for kind, size in sizes.items()}
    history = tokens.get("messages", 0)
    to.tell(
        "history.snapshot", at, revision=f"request-{at}", request_bytes=total, history=history,
        system=tokens.get("system_instructions"), tools=tokens.get("tool_definitions"),
        extras=tokens.get("other"), **_parts(known, history, found.get("compaction")),
    )  # fmt: skip


def _parts(known: Known, history: int, folded: Frame | None) -> Frame:
    """The summary, the turns after what it covers, and the one that runs or ran last."""
    bulks: list[Frame] = []
    left, covered = history, 0
    if folded is not None:
        tokens = min(history, int(folded.get("estimatedTokens") or 0))
        bulks = [{"id": "checkpoint", "tokens": tokens, "records": folded.get("eventCount")}]
        left, covered = history - tokens, int(folded.get("turnCount") or 0)
    kept = known.sizes[max(0, covered - known.turns_before) :] or known.sizes[-1:]
    chars = sum(size for _, size in kept)
    shares = [(turn, left * size // chars if chars else 0) for turn, size in kept]
    topics = [{"id": turn, "tokens": tokens} for turn, tokens in shares[:-1]]
    current = left - sum(topic["tokens"] for topic in topics)
    return {"bulks": bulks, "topics": topics, "current": {"tokens": current}}
