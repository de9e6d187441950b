"""The words of incidents: what went wrong in a chat from its first evidence to calm.

Times are server milliseconds (a transcript's own), ``seq`` a place in the chat's log, quantities
tokens; None is unknown or not yet.
"""

from __future__ import annotations

from ctxhealth.core.model import Severity, State, View

# A cause's key begins with this where it says nothing beyond one agent's chats.
OF_AGENT = "agent/"

# Failures of a service, whatever it is asked; the others depend on the chat.
OF_SERVICE = frozenset(
    {"quota", "auth", "rate_limit", "provider", "network", "timeout", "empty", "provider_empty"}
)


class IncidentLink(View, frozen=True, kw_only=True):
    """One link of the cause chain with its event.

    ``kind``: finding, attempt, latch, reply, stop, command. ``code``: a finding's code,
    ``summarizer_`` and its error class or an outcome, ``latch_`` and its kind, a command's kind.
    ``count`` of replies, attempts and so on; ``until`` where it ended; ``root`` for one of them.
    """

    code: str
    kind: str
    at: int
    seq: int
    sentence: str
    severity: Severity | None = None
    until_at: int | None = None
    until_seq: int | None = None
    count: int = 1
    root: bool = False


class Cause(View, frozen=True, kw_only=True):
    """What chats of one cause group share; ``agent`` where it does not reach beyond one agent."""

    finding: str
    summarizer_model: str | None = None
    provider: str | None = None
    error_class: str | None = None
    agent: str | None = None

    @property
    def key(self) -> str:
        """The same text for the same cause, and only for that."""
        parts = (self.finding, self.summarizer_model, self.provider, self.error_class)
        told = "/".join(_escaped(part) for part in parts)
        if self.reaches_beyond_an_agent:
            return told
        return f"{OF_AGENT}{told}" + (f"/{_escaped(self.agent)}" if self.agent else "")

    @property
    def reaches_beyond_an_agent(self) -> bool:
        """Whether a model or a provider fails by itself that chats of other agents use as well."""
        named = self.summarizer_model is not None or self.provider is not None
        return named and self.error_class in OF_SERVICE


class IncidentCommand(View, frozen=True, kw_only=True):
    """A command given while it lasted; ``ended_at`` when its state became final."""

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


class IncidentView(View, frozen=True, kw_only=True):
    """One incident of one chat, as ``core_version`` of the fold judges it.

    ``started``: first evidence of the root; ``opened`` and ``detected_at``: the first critical
    finding; ``acted``: the first command of a person; ``recovered_at``: since when nothing of it
    is true any more; ``answered_at``: the first answered turn after the last critical finding;
    ``closed_how``: requests, time, or ended (the chat or its transcript did).
    ``burnt_tokens``: what summarizers read for attempts that failed or freed nothing, as far as
    known; None where of no such call the usage is known. ``burnt_unknown_calls`` add to it.
    ``empties``, ``requests``, ``turns``: counts since it opened, empties of its evidence too;
    ``unusable``: the longest row of unusable replies.
    """

    opened_seq: int
    opened_at: int
    started_seq: int
    started_at: int
    detected_at: int
    root: str
    cause: Cause
    sentence: str
    worst_state: State
    worst_severity: Severity
    chain: tuple[IncidentLink, ...] = ()
    codes: tuple[str, ...] = ()
    acted_at: int | None = None
    acted_by: str | None = None
    recovered_at: int | None = None
    answered_at: int | None = None
    closed_seq: int | None = None
    closed_at: int | None = None
    closed_how: str | None = None
    commands: tuple[IncidentCommand, ...] = ()
    burnt_tokens: int | None = None
    burnt_unknown_calls: int = 0
    empties: int = 0
    unusable: int = 0
    requests: int = 0
    turns: int = 0
    lost_links: int = 0
    core_version: int = 0


def _escaped(part: str | None) -> str:
    return (part or "").replace("%", "%25").replace("/", "%2F")
