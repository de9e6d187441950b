"""What the API answers about incidents."""

from __future__ import annotations

from ctxhealth.core.incidents_model import Cause, IncidentView
from ctxhealth.web.api.shapes import CommandShape, Shape


class IncidentShape(Shape, frozen=True, kw_only=True):
    """One incident, or with ``kind`` review a range that somebody chose.

    ``chat`` is the chat's number here, ``group_chats`` how many chats are in trouble for the same
    cause now; ``state`` and ``severity`` are the worst of it.
    """

    id: int
    kind: str
    chat: int
    chat_external: str
    chat_title: str
    agent: str
    opened_seq: int
    opened_at: int
    started_at: int
    detected_at: int
    acted_at: int | None
    acted_by: str | None
    recovered_at: int | None
    closed_seq: int | None
    closed_at: int | None
    root: str
    state: str
    severity: str
    sentence: str
    cause: Cause | None
    group: int | None
    group_chats: int
    owner: str
    verdict: str


class IncidentList(Shape, frozen=True, kw_only=True):
    """``counts`` of open, closed, all and reviews obey every filter but ``state``."""

    incidents: list[IncidentShape]
    page: int
    pages: int
    total: int
    counts: dict[str, int]


class CauseGroupShape(Shape, frozen=True, kw_only=True):
    """Chats in trouble for one cause; ``count`` is of all its incidents, closed ones too."""

    id: int
    words: str
    chats: list[int]
    waiting: int
    since: int
    closed_at: int | None
    alerted_at: int | None
    count: int
    owner: str


class NoteShape(Shape, frozen=True, kw_only=True):
    """A reviewer's note in Markdown, as written."""

    id: int
    text: str
    by: str
    at: int
    edited_at: int | None


class VerdictShape(Shape, frozen=True, kw_only=True):
    """A reviewer's word: ``root_cause`` with its text, ``false_alarm``, or empty."""

    verdict: str
    text: str
    by: str
    at: int | None


class IncidentDocument(Shape, frozen=True, kw_only=True):
    """An incident in full. ``view`` is by the present rules (null where they see none, and for a
    review), ``judged`` as it was judged when it closed. ``to_seq`` null: to the log's end."""

    incident: IncidentShape
    view: IncidentView | None
    judged: IncidentView | None
    from_seq: int
    to_seq: int | None
    group: CauseGroupShape | None
    notes: list[NoteShape]
    verdict: VerdictShape
    commands: list[CommandShape]
