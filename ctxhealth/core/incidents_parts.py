"""What is remembered of a chat's open incident: bounded, changed in place by the fold."""

from __future__ import annotations

import msgspec

from ctxhealth.core.incidents_model import Cause
from ctxhealth.core.parts import Fact, Part

CHAIN_LINKS = 24
INCIDENT_COMMANDS = 24


class ChainLink(Part):
    """One link of the cause chain; ``facts`` are the numbers its sentence is made of.

    A link that comes back after it ended is the same link: it counts and is open again.
    """

    code: str
    kind: str
    at: int
    seq: int
    severity: str | None = None
    critical_seq: int | None = None
    facts: tuple[Fact, ...] = ()
    until_at: int | None = None
    until_seq: int | None = None
    count: int = 1


class GivenCommand(Part):
    """A command given while the incident is open."""

    command: str
    kind: str
    state: str
    at: int
    seq: int
    by: str | None = None
    ended_at: int | None = None
    before: int | None = None
    after: int | None = None
    reason: str | None = None


class Burnt(Part):
    """What summarizers read for nothing; ``calls`` whose usage nobody told."""

    tokens: int = 0
    known: bool = False
    calls: int = 0


class OpenIncident(Part):
    """``calm_since``: since when nothing of it is true; ``calm_requests``: answered by then. The
    ``*_before`` are the chat's own counts at the opening, less what belongs to its evidence.
    """

    opened_seq: int
    opened_at: int
    started_seq: int
    started_at: int
    worst: str
    root: str
    cause: Cause
    chain: dict[str, ChainLink] = msgspec.field(default_factory=dict)
    lost: int = 0
    commands: list[GivenCommand] = msgspec.field(default_factory=list)
    burnt: Burnt = msgspec.field(default_factory=Burnt)
    acted_at: int | None = None
    acted_by: str | None = None
    answered_at: int | None = None
    calm_since: int | None = None
    calm_requests: int = 0
    empties_before: int = 0
    requests_before: int = 0
    turns_before: int = 0
    answered_before: int = 0
    unusable: int = 0
    last_attempt: str | None = None
    # What the chain has seen of latches, and whether a link of an attempt is still open.
    latches_seen: tuple[int, int] = (0, 0)
    failing: bool = False
