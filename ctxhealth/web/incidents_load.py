"""Reads what a review shows: the range's rows, and the chat at one moment of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxhealth.core.model import Severity
from ctxhealth.store import queries
from ctxhealth.store.queries import AuditRow, ChatRow
from ctxhealth.store.queries.bundles import BundleRow, bundle_of_chat, bundle_trail
from ctxhealth.store.queries.incidents import IncidentDetail
from ctxhealth.store.queries.ranges import Range, RangeRows, range_of, range_rows, seq_at
from ctxhealth.web.incidents_axis import Axis, axis_of, finding_entry
from ctxhealth.web.incidents_moment import Moment, moment_of
from ctxhealth.web.incidents_page import IncidentPage, page_of
from ctxhealth.web.series import LANE_TYPES, series_of, table_of

LEAD_EVENTS = 50
LEAD_SHARE = 0.25
LEAST_LEAD_MS = 10_000
MOST_TRAIL = 500
SMALL_PART = 0.6


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of one chat with all that its axis shows."""

    chat: ChatRow
    within: Range
    rows: RangeRows
    axis: Axis
    series: dict[str, Any]

    @property
    def table(self) -> list[dict[str, Any]]:
        """Readings and marks of the range, oldest first."""
        first, last = self.within.first_at, max(self.within.first_at, self.within.last_at)
        rows = [row for row in table_of(self.rows.points, self.series) if row["at"] is not None]
        return [row for row in rows if first <= row["at"] <= last][::-1]

    @property
    def count(self) -> int:
        """Events from its first to its last."""
        return self.within.last - self.within.first + 1

    @property
    def more(self) -> int:
        """Marks that were too many to draw."""
        return sum(lane.more for lane in self.axis.lanes)

    @property
    def names(self) -> list[tuple[str, str]]:
        """(lane, its words) from above; findings, which have a row each, are named once."""
        named: list[tuple[str, str]] = []
        for lane in self.axis.lanes:
            again = lane.name == "findings" and named[-1][0] == "findings"
            title = lane.name if lane.name == "findings" else lane.title
            named.append((lane.name, "" if again else title))
        return named


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident with its chat; ``dwell`` is the event that its page opens at, ``came`` says
    where the chat is from where it is not this server's. ``core`` is where its chain happened,
    where that is a small part of a long incident."""

    chat: ChatRow
    within: Range
    page: IncidentPage
    dwell: int
    came: BundleRow | None
    core: Range | None = None


def incident_of(incident_id: int, now: int) -> Incident | None:
    """None where there is no such incident, or nothing is left of its log."""
    detail = queries.incident_detail(incident_id)
    chat = queries.chat_get(detail.row.chat) if detail else None
    if detail is None or chat is None:
        return None
    came = bundle_of_chat(chat.id)
    within = _within(detail, chat, came)
    if within is None:
        return None
    commands, trail = queries.incident_commands(incident_id), _trail(detail, came)
    page = page_of(detail, commands, trail, now, _left_open(detail, came))
    dwell = detail.row.closed_seq or within.last
    if detail.row.kind == "automatic":
        dwell = max(detail.row.opened_seq, within.first)
    core = _core(page, chat.id, within)
    return Incident(chat, within, page, min(dwell, within.last), came, core)


def _left_open(detail: IncidentDetail, came: BundleRow | None) -> int | None:
    """When the bundle of an incident was made that was open then: what closed it here is this
    server's own doing."""
    closed = detail.row.closed_seq
    return came.exported_at if came and closed is not None and closed > came.head else None


def _core(page: IncidentPage, chat: int, within: Range) -> Range | None:
    """From the root to the last link that was critical: what an incident that then stood still
    for hours would press into a corner."""
    links = [each.link for each in page.chain]
    seqs = [link.seq for link in links if link.root or link.severity is Severity.CRITICAL]
    core = with_lead(chat, min(seqs), max(seqs), within.last) if seqs else None
    if core is None:
        return None
    took, whole = core.last_at - core.first_at, within.last_at - within.first_at
    return core if took < whole * SMALL_PART else None


def _within(detail: IncidentDetail, chat: ChatRow, came: BundleRow | None) -> Range | None:
    """A review is exactly what somebody chose; an incident has a little around it. What this
    server added to a chat that came in a bundle is no part of what happened."""
    head = head_of(chat, came)
    last = min(detail.to_seq or head, head)
    if detail.row.kind == "review":
        return range_of(chat.id, detail.from_seq, last)
    return with_lead(chat.id, detail.from_seq, last, head)


def head_of(chat: ChatRow, came: BundleRow | None) -> int:
    """The last event that the chat's agent or its own server wrote."""
    return came.head if came and came.head else chat.chat_seq


def _trail(detail: IncidentDetail, came: BundleRow | None) -> list[AuditRow]:
    """What people did about it: while it lasted, and to it ever after."""
    row = detail.row
    own = {f"incident {row.id}", f"review {row.id}"}
    ended = row.closed_at
    ours = [
        line
        for line in queries.audit_page(chat=row.chat, limit=MOST_TRAIL).rows
        if line.target in own or (line.at >= row.started_at and (ended is None or line.at <= ended))
    ]
    return [*ours, *(bundle_trail(row.chat, row.id) if came else ())]


def stretch_of(chat: ChatRow, within: Range) -> Stretch:
    rows = range_rows(chat.id, within, LANE_TYPES)
    series = series_of(
        rows.points, rows.attempts, rows.latches, rows.commands, rows.events,
        ended_at=within.last_at,
    )  # fmt: skip
    series["lanes"]["findings"] = [finding_entry(finding) for finding in rows.findings]
    first, last = within.first_at, max(within.first_at, within.last_at)
    axis = axis_of(rows.points, series["lanes"], rows.findings, first=first, last=last)
    return Stretch(chat, within, rows, axis, series)


def with_lead(chat_id: int, started: int, ended: int, head: int) -> Range | None:
    """The range of an incident with a little of what came before and after.

    By events, and not by more than a quarter of its time: hours of calm before it would press
    everything that happened into a corner.
    """
    core = range_of(chat_id, started, ended)
    around = range_of(chat_id, max(1, started - LEAD_EVENTS), min(head, ended + LEAD_EVENTS))
    if core is None or around is None:
        return core
    lead = max(LEAST_LEAD_MS, int((core.last_at - core.first_at) * LEAD_SHARE))
    first = seq_at(chat_id, core.first_at - lead, around)
    last = seq_at(chat_id, core.last_at + lead, around)
    return range_of(chat_id, min(first, core.first), max(last, core.last))


def moment_at(chat_id: int, seq: int, within: Range) -> Moment | None:
    """The chat as of an event of the range; None where the chat is gone."""
    seq = max(within.first, min(seq, within.last))
    detail = queries.chat_detail(chat_id, at=seq)
    if detail is None:
        return None
    return moment_of(detail, queries.chat_event(chat_id, seq), within.first_at, within)
