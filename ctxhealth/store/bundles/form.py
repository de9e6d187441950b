"""The form of a bundle, version 1, with its limits. Times are ms, sequences places in the log."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ctxhealth.wire.limits import EVENT_BYTES

FORMAT = "ctxhealth.bundle"
VERSION = 1
MOST_BYTES = 64 * 1024 * 1024
MOST_EVENTS = 200_000
MOST_COMMANDS = 2_000
MOST_NOTES = 1_000
MOST_AUDIT = 5_000
MOST_BODY = EVENT_BYTES + 8 * 1024  # a tombstone's own words come on top
MOST_TEXT = 20_000
MOST_VIEW = 1024 * 1024

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
Place = Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
Word = Annotated[str, msgspec.Meta(max_length=200)]
Text = Annotated[str, msgspec.Meta(max_length=MOST_TEXT)]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base: what a version does not know is refused, not dropped."""


class Origin(Part, frozen=True, kw_only=True):
    """Where the chat was first: the database's incarnation and its number there."""

    incarnation: Word
    chat: Place
    core_version: Count = 0


class BundleChat(Part, frozen=True, kw_only=True):
    agent: Annotated[str, msgspec.Meta(min_length=1, max_length=160)]
    runtime: Word = ""
    external_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    opened_at: Count
    text: Word = ""


class BundleEvent(msgspec.Struct, frozen=True, array_like=True):
    """One line of the log: ``body`` is the stored JSON, character for character."""

    chat_seq: Place
    type: Word
    ts: Count
    received: Count
    at: Count
    body: Annotated[str, msgspec.Meta(max_length=MOST_BODY)]
    by_server: bool = False
    tombstone: bool = False


class BundleCommand(Part, frozen=True, kw_only=True):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    args: Text = "{}"
    mutating: bool = True
    reason: Text = ""
    by: Word = ""
    state: Annotated[str, msgspec.Meta(max_length=20)]
    state_reason: Text = ""
    created_at: Count
    deliver_by: Count
    lease_s: Annotated[int, msgspec.Meta(ge=0, le=10**6)]
    sent_at: Count | None = None
    received_at: Count | None = None
    started_at: Count | None = None
    ended_at: Count | None = None
    before: Count | None = None
    after: Count | None = None
    backup: Text = ""
    detail: Text = ""


class BundleNote(Part, frozen=True, kw_only=True):
    text: Text
    by: Word = ""
    at: Count
    edited_at: Count | None = None


class BundleAudit(Part, frozen=True, kw_only=True):
    """A line of the trail; who asked from where stays at home."""

    at: Count
    by: Word = ""
    action: Annotated[str, msgspec.Meta(max_length=60)]
    target: Annotated[str, msgspec.Meta(max_length=300)] = ""
    reason: Text = ""
    result: Annotated[str, msgspec.Meta(max_length=60)]
    command: Annotated[str, msgspec.Meta(max_length=40)] = ""


class BundleIncident(Part, frozen=True, kw_only=True):
    """``judged`` is the ``IncidentView`` as it was judged then; ``kind`` automatic or review."""

    kind: Annotated[str, msgspec.Meta(pattern="^(automatic|review)$")]
    opened_seq: Place
    opened_at: Count
    started_seq: Place
    started_at: Count
    closed_seq: Place | None = None
    closed_at: Count | None = None
    root: Annotated[str, msgspec.Meta(max_length=60)] = ""
    state: Annotated[str, msgspec.Meta(max_length=20)] = ""
    severity: Annotated[str, msgspec.Meta(max_length=10)] = ""
    sentence: Text = ""
    judged: Annotated[str, msgspec.Meta(max_length=MOST_VIEW)] = ""
    owner: Word = ""
    owned_at: Count | None = None
    verdict: Annotated[str, msgspec.Meta(max_length=20)] = ""
    verdict_text: Text = ""
    verdict_by: Word = ""
    verdict_at: Count | None = None
    created_by: Word = ""


class Bundle(Part, frozen=True, kw_only=True):
    format: str
    version: int
    exported_at: Count
    exported_by: Word = ""
    origin: Origin
    chat: BundleChat
    incident: BundleIncident
    events: Annotated[list[BundleEvent], msgspec.Meta(min_length=1, max_length=MOST_EVENTS)]
    commands: Annotated[list[BundleCommand], msgspec.Meta(max_length=MOST_COMMANDS)] = []
    notes: Annotated[list[BundleNote], msgspec.Meta(max_length=MOST_NOTES)] = []
    audit: Annotated[list[BundleAudit], msgspec.Meta(max_length=MOST_AUDIT)] = []


class Label(msgspec.Struct):
    """Enough of a document to say whether it is a bundle, and of which version."""

    format: Any = None
    version: Any = None
