"""What one batch of events changed in one chat: what the store writes beside the state."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from ctxhealth.core.findings.views import finding_view
from ctxhealth.core.incidents_model import IncidentView
from ctxhealth.core.incidents_view import incident_view
from ctxhealth.core.model import AttemptView, FindingView, LatchView, ReadingPoint
from ctxhealth.core.state import ChatState


class ItemChange(msgspec.Struct, gc=False):
    """One step of membership. ``op``: add, remove, move (to ``block``), clear (all of them).

    ``block`` is the topic or bulk the item stands in, or ``current``; ``id`` is empty for clear.
    ``add`` of a known id is an upsert that puts it back into the context.
    """

    op: str
    id: str
    chat_seq: int
    at: int
    role: str | None = None
    kind: str | None = None
    tokens: int | None = None
    block: str | None = None
    turn: str | None = None
    name: str | None = None
    excerpt: str | None = None
    calls: list[str] | None = None
    answers: list[str] | None = None
    read: bool | None = None


class CommandChange(msgspec.Struct, gc=False):
    """A command's progress as its chat's log tells it; ``kind`` None where it was never named."""

    command: str
    state: str
    chat_seq: int
    at: int
    kind: str | None = None
    reason: str | None = None
    before: int | None = None
    after: int | None = None
    backup: str | None = None
    detail: object = None


@dataclass(slots=True)
class Changes:
    """Filled by ``fold`` over one batch of one chat, then written and thrown away.

    ``facts``: the summary may have changed. ``oddities``: events that made no sense, in words.
    Latches are keyed by (latch, set_seq): one id may be set again. Views of findings are made
    when asked for, from the state as the batch left it.
    """

    attempts: dict[str, AttemptView] = field(default_factory=dict)
    latches: dict[tuple[str, int], LatchView] = field(default_factory=dict)
    items: list[ItemChange] = field(default_factory=list)
    readings: list[ReadingPoint] = field(default_factory=list)
    commands: list[CommandChange] = field(default_factory=list)
    facts: bool = False
    parent: str | None = None
    oddities: list[str] = field(default_factory=list)
    findings_closed: list[FindingView] = field(default_factory=list)
    # Code -> True when this batch opened it, False when it only changed it.
    touched: dict[str, bool] = field(default_factory=dict)
    incidents_closed: list[IncidentView] = field(default_factory=list)
    # The open incident's view may be another one.
    incident_touched: bool = False
    state: ChatState | None = None

    @property
    def findings_opened(self) -> dict[str, FindingView]:
        """Findings that this batch opened and that are still open, by code."""
        return self._views(opened=True)

    @property
    def findings_updated(self) -> dict[str, FindingView]:
        """Findings that were open before and whose numbers or severity changed, by code."""
        return self._views(opened=False)

    @property
    def findings(self) -> dict[tuple[str, int], FindingView]:
        """Every finding this batch touched, closed ones too: upsert them by (code, since_seq)."""
        views = [*self.findings_closed]
        views += self.findings_updated.values()
        views += self.findings_opened.values()
        return {(view.code, view.since_seq): view for view in views}

    @property
    def incidents(self) -> dict[int, IncidentView]:
        """Every incident this batch opened, changed or closed, by the event that opened it."""
        views = {view.opened_seq: view for view in self.incidents_closed}
        state = self.state
        if self.incident_touched and state is not None and state.incident is not None:
            views[state.incident.opened_seq] = incident_view(state, state.incident)
        return views

    def _views(self, *, opened: bool) -> dict[str, FindingView]:
        state = self.state
        if state is None:
            return {}
        return {
            code: finding_view(state, code)
            for code, was_opened in self.touched.items()
            if was_opened is opened and code in state.findings
        }
