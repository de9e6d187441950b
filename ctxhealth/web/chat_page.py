"""Everything a chat's regions show, put together from the core's views; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ctxhealth.core.model import (
    AttemptView,
    ChatDetail,
    ChatSummary,
    FindingView,
    LatchView,
    Severity,
)
from ctxhealth.core.presence import ENDED, waits
from ctxhealth.store.queries import CommandRow
from ctxhealth.web import states
from ctxhealth.web.actions import FOLLOWED, READ_ONLY, Button, buttons_of, obstacle_to, reachable
from ctxhealth.web.format import words
from ctxhealth.web.receipts import Receipt, receipts_of
from ctxhealth.web.rows import BoardRowLike
from ctxhealth.web.strip import KIND_TITLES, Strip, strip_of


class ChatLike(Protocol):
    """Which chat it is (``queries.ChatRow``)."""

    @property
    def id(self) -> int: ...
    @property
    def agent(self) -> str: ...
    @property
    def external_id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Change:
    """Before over after of the last compaction that changed something, on one scale."""

    attempt: AttemptView
    before: Strip
    after: Strip
    moved: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class ParentLink:
    """The chat that this one is a sub-agent of."""

    id: int
    title: str


@dataclass(frozen=True, slots=True)
class ChatExtras:
    """What belongs to a chat's page beside the folded detail; lists are newest first."""

    chat: ChatLike
    attempts: Sequence[AttemptView] = ()
    latches: Sequence[LatchView] = ()
    closed_findings: Sequence[FindingView] = ()
    commands: Sequence[CommandRow] = ()
    children: Sequence[BoardRowLike] = ()
    change: Change | None = None
    attempts_total: int | None = None
    parent: ParentLink | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """Findings that stand folded away, and the line that says why."""

    findings: tuple[FindingView, ...]
    says: str


@dataclass(frozen=True, slots=True)
class LegendEntry:
    kind: str
    title: str
    tokens: int | None
    note: str = ""
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class ChatPage:
    """The template's view of one chat."""

    id: int
    title: str
    agent: str
    summary: ChatSummary
    strip: Strip
    legend: tuple[LegendEntry, ...]
    buttons: tuple[Button, ...]
    receipts: tuple[Receipt, ...]
    open_receipt: Receipt | None
    tone: str
    beyond: int | None
    free: int | None
    clearable: bool
    followed: str
    ended: bool
    unanswered_at: int | None
    manual: tuple[str, ...] = field(default=())


def chat_context(
    detail: ChatDetail, extras: ChatExtras, now: int, *, operate: bool
) -> dict[str, Any]:
    summary = detail.summary
    receipts = receipts_of(extras.commands, extras.attempts, reachable=reachable(summary))
    ranked = _by_severity(detail.findings)
    standing = next((receipt for receipt in receipts if not receipt.final), None)
    page = ChatPage(
        id=extras.chat.id,
        title=summary.title or extras.chat.external_id,
        agent=extras.chat.agent,
        summary=summary,
        strip=strip_of(summary, detail.structure.blocks),
        legend=tuple(_legend(summary)),
        buttons=buttons_of(detail, busy=_busy(standing)) if operate else (),
        receipts=tuple(receipts),
        open_receipt=standing,
        tone=_tone(summary),
        beyond=_beyond(summary),
        free=summary.headroom.budget,
        clearable=operate and standing is None and not obstacle_to("clear_latch", detail),
        followed=READ_ONLY if summary.connection in FOLLOWED else "",
        ended=summary.connection in ENDED,
        unanswered_at=None if waits(summary, now) else summary.waiting_since,
        manual=tuple(_manual(detail)),
    )
    return {
        "now": now,
        "operate": operate,
        "page": page,
        "chat": extras.chat,
        "detail": detail,
        "summary": summary,
        "extras": extras,
        "attempts_top": _top(extras.attempts),
        "findings": [f for f in ranked if not f.suppressed_by],
        "explained": _explained(ranked),
    }


def _busy(standing: Receipt | None) -> str:
    if standing is None:
        return ""
    by = standing.command.by or "somebody"
    return f"{standing.action.label} by {by} is under way ({standing.state.label.lower()})."


def _tone(summary: ChatSummary) -> str:
    return states.standing(summary).tone


def _beyond(summary: ChatSummary) -> int | None:
    """Nothing where the count cannot be right: it says nothing about the window."""
    load, window = summary.load.value, summary.window.value
    if not summary.load.reliable:
        return None
    return load - window if load is not None and window is not None and load > window else None


def _legend(summary: ChatSummary) -> list[LegendEntry]:
    entries = [
        LegendEntry(s.kind, KIND_TITLES.get(s.kind, s.kind), s.tokens, "", s.estimate)
        for s in summary.segments
    ]
    if summary.projection is not None and summary.load.value is not None:
        grown = summary.projection - summary.load.value
        if grown > 0:
            entries.append(LegendEntry("projection", "added since", grown, "", True))
    room = summary.headroom.budget
    if room is not None and room > 0:
        entries.append(LegendEntry("free", "usable and free", room))
    if summary.reserve is not None:
        note = "assumed" if summary.reserve_assumed else ""
        entries.append(LegendEntry("reserve", "reserve", summary.reserve, note))
    return entries


def _top(attempts: Sequence[AttemptView]) -> int | None:
    """The scale of all before-after bars of one chat."""
    sizes = [size for a in attempts for size in (a.before, a.after) if size is not None]
    return max(sizes, default=None)


_SEVERITY_ORDER = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


def _by_severity(findings: Sequence[FindingView]) -> list[FindingView]:
    return sorted(findings, key=lambda f: (_SEVERITY_ORDER[f.severity], f.since))


def _explained(ranked: Sequence[FindingView]) -> Explained:
    """What another finding accounts for, with the names of those that do."""
    under = tuple(finding for finding in ranked if finding.suppressed_by)
    titles = {finding.code: f"“{finding.title}”" for finding in ranked}
    codes = dict.fromkeys(f.suppressed_by for f in under if f.suppressed_by)
    causes = " and ".join(titles.get(code, words(code)) for code in codes)
    return Explained(under, f"{len(under)} more, explained by {causes}")


def _manual(detail: ChatDetail) -> list[str]:
    """Written steps for the operator, worst finding first, each once."""
    steps: dict[str, None] = {}
    for finding in _by_severity(detail.findings):
        for advice in finding.recommended:
            if advice.action == "manual":
                steps.setdefault(advice.text)
    return list(steps)


def change_of(
    attempt: AttemptView,
    before: ChatDetail,
    after: ChatDetail,
) -> Change:
    """Both strips and what each part gave or took, in tokens."""
    old = {segment.kind: segment.tokens for segment in before.summary.segments}
    new = {segment.kind: segment.tokens for segment in after.summary.segments}
    moved = tuple(
        (KIND_TITLES.get(kind, kind), old.get(kind, 0), new.get(kind, 0))
        for kind in KIND_TITLES
        if old.get(kind, 0) != new.get(kind, 0)
    )
    return Change(
        attempt,
        strip_of(before.summary, before.structure.blocks),
        strip_of(after.summary, after.structure.blocks),
        moved,
    )
