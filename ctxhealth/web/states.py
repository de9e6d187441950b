"""Labels, icons and tones for the pages, all from their one definition in the core."""

from __future__ import annotations

from typing import Any

from ctxhealth.core.model import ChatSummary, Connection, Outcome, Severity, State
from ctxhealth.core.states import (
    COMMAND_STATE_META,
    CONNECTION_META,
    OUTCOME_META,
    SEVERITY_META,
    STATE_META,
    Meta,
    meta_of,
)

__all__ = [
    "COMMAND_STATE_META",
    "CONNECTION_META",
    "OUTCOME_META",
    "SEVERITY_META",
    "STATE_META",
    "Meta",
    "command",
    "connection",
    "outcome",
    "severity",
    "standing",
    "state",
]

_OTHER = Meta(label="unknown", icon="circle-help", tone="neutral")


def state(value: Any) -> Meta:
    return STATE_META.get(State(value), _OTHER)


def standing(summary: ChatSummary) -> Meta:
    """The state of a chat, as grave as what is wrong with it."""
    return meta_of(summary.state, summary.severity)


def severity(value: Any) -> Meta:
    return SEVERITY_META[Severity(value)]


def outcome(value: Any) -> Meta:
    return OUTCOME_META.get(Outcome(value), _OTHER)


def connection(value: Any) -> Meta:
    return CONNECTION_META.get(Connection(value), _OTHER)


def command(value: Any) -> Meta:
    return COMMAND_STATE_META.get(value, _OTHER)
