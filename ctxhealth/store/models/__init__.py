"""Tables of the store, by concept. Times are milliseconds since the epoch, server clock."""

from __future__ import annotations

from ctxhealth.store.models.actions import AuditEntry, Command, LoginLink
from ctxhealth.store.models.bundles import ImportedBundle
from ctxhealth.store.models.chats import Chat, Checkpoint, Event, Item, Reading
from ctxhealth.store.models.fleet import (
    Agent,
    AgentConnection,
    AgentToken,
    Project,
    ServerInfo,
    Stream,
)
from ctxhealth.store.models.imports import Import, ImportPlace
from ctxhealth.store.models.incidents import CauseGroup, Incident, IncidentNote
from ctxhealth.store.models.judgements import CompactionAttempt, Finding, Latch
from ctxhealth.store.models.oncall import HandoverNote, Silence
from ctxhealth.store.models.overrides import WindowOverride
from ctxhealth.store.models.settings import Judging, Setting

__all__ = [
    "Agent",
    "AgentConnection",
    "AgentToken",
    "AuditEntry",
    "CauseGroup",
    "Chat",
    "Checkpoint",
    "Command",
    "CompactionAttempt",
    "Event",
    "Finding",
    "HandoverNote",
    "Import",
    "ImportPlace",
    "ImportedBundle",
    "Incident",
    "IncidentNote",
    "Item",
    "Judging",
    "Latch",
    "LoginLink",
    "Project",
    "Reading",
    "ServerInfo",
    "Setting",
    "Silence",
    "Stream",
    "WindowOverride",
]
