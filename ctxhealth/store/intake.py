"""Events on their way into the store: decoded ones and those that only leave a tombstone."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

import msgspec

from ctxhealth.store.redaction import redacted, secrets_in
from ctxhealth.wire import EVENT_TYPES, Batch, Decoded, Event, Reject
from ctxhealth.wire.decode import encode_event
from ctxhealth.wire.events import CountedMessage, Note
from ctxhealth.wire.frames import Rejected

TOMBSTONE_CODE = "rejected"
KEPT_BYTES = 1024
_KINDS: dict[type, str] = {struct: name for name, struct in EVENT_TYPES.items()}
_KINDS[CountedMessage] = "message.added"
_CHAT = re.compile(rb'"chat"\s*:\s*"([^"\\\x00-\x1f]{1,200})"')
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class StreamHandle(NamedTuple):
    """Where a connection writes: keys of its project, agent and stream."""

    project: int
    agent: int
    stream: int
    agent_name: str
    read_only: bool = False
    commands: tuple[str, ...] = ()
    skew_ms: int | None = None
    epoch: str = ""


class Intake(msgspec.Struct, frozen=True, gc=False):
    """One event to store. ``rejected`` marks a tombstone; ``event`` is then its note."""

    seq: int
    event: Event
    kind: str
    body: str
    rejected: Rejected | None = None


class Receipt(NamedTuple):
    """What became of one submission, after its commit.

    ``upto``: the stream's head; ``resend``: go back to this seq; ``replaced``: a newer
    connection owns the agent. ``before`` is the head that was found,
    ``conflicting`` are duplicates with other content than what is stored.
    """

    upto: int
    before: int = 0
    stored: int = 0
    duplicates: int = 0
    conflicting: tuple[int, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    resend: int | None = None
    replaced: bool = False

    @property
    def conflicts(self) -> int:
        return len(self.conflicting)


def intake_of(decoded: Decoded) -> Intake:
    """A decoded event, with secrets taken out before anything is stored."""
    event, body = redacted(decoded.event, decoded.body, decoded.plain)
    return Intake(event.seq, event, kind_of(event), body.decode())


def intakes_of(batch: Batch) -> list[Intake]:
    """The same for a frame of plain events."""
    made = []
    for event, body in zip(batch.events, batch.bodies, strict=True):
        if secrets_in(event):
            event, body = redacted(event, body)
        made.append(Intake(event.seq, event, _KINDS[type(event)], body.decode()))
    return made


def kind_of(event: Event) -> str:
    """The event's type on the wire."""
    known = _KINDS.get(type(event))
    return known if known is not None else str(getattr(event, "type", "unknown"))[:200]


def tombstone_of(problem: Reject, raw: bytes, seq: int, now: int) -> Intake:
    """What stays of a permanently bad event: its place, why, its hash and how it began."""
    return _tombstone(
        Rejected(seq=seq, code=problem.code, path=problem.path[:200], detail=problem.detail[:400]),
        kind=problem.kind or "unreadable",
        raw=raw,
        now=now,
    )


def poison_of(intake: Intake, detail: str, now: int) -> Intake:
    """The tombstone of an event that decoded but that the server could not store."""
    rejected = Rejected(seq=intake.seq, code="internal", path="$", detail=detail[:400])
    return _tombstone(rejected, intake.kind, intake.body.encode(), now)


class _Grave(msgspec.Struct, omit_defaults=True):
    """Beside the note's own fields: what the page shows of the event that was refused."""

    reject: Rejected
    kind: str
    size: int
    sha256: str
    head: str


def _tombstone(rejected: Rejected, kind: str, raw: bytes, now: int) -> Intake:
    found = _CHAT.search(raw[: 64 * 1024])
    note = Note(
        seq=rejected.seq,
        ts=now,
        chat=found.group(1).decode("utf-8", "replace") if found else None,
        level="error",
        code=TOMBSTONE_CODE,
        text=f"{rejected.code} at {rejected.path}: {rejected.detail}",
    )
    grave = _Grave(rejected, kind, len(raw), hashlib.sha256(raw).hexdigest(), _start_of(raw))
    merged = {**msgspec.to_builtins(note), "extra": msgspec.to_builtins(grave)}
    note, body = redacted(note, msgspec.json.encode(merged))
    return Intake(rejected.seq, note, kind, body.decode(), rejected)


def _start_of(raw: bytes) -> str:
    return _CONTROL.sub("\ufffd", raw[:KEPT_BYTES].decode("utf-8", "replace"))


def server_body(event: Event) -> str:
    """The stored body of an event that the server itself made."""
    return encode_event(event).decode()
