"""Label, icon and tone of every word that is shown, defined once for pages, API and docs.

Icons are ids of the sprite; tones are: critical, warning, info, good, neutral, active.
"""

from __future__ import annotations

from typing import NamedTuple

from ctxhealth.core.model import Connection, Outcome, Relief, Severity, Source, State


class Meta(NamedTuple):
    label: str
    icon: str
    tone: str


STATE_META: dict[State, Meta] = {
    State.BROKEN: Meta("Broken", "unlink", "critical"),
    State.STOPPED: Meta("Stopped", "octagon-x", "critical"),
    State.HUNG: Meta("Hung", "hourglass", "critical"),
    State.SILENT: Meta("Silent", "message-square-off", "critical"),
    State.BLOCKED: Meta("Blocked", "lock", "critical"),
    State.STALLED: Meta("Stalled", "circle-pause", "critical"),
    State.LOOPING: Meta("Looping", "repeat", "critical"),
    State.CANNOT_FIT: Meta("Cannot fit", "minimize", "critical"),
    State.OVER: Meta("Over", "circle-alert", "critical"),
    State.RECOVERING: Meta("Recovering", "heart-pulse", "active"),
    State.SATURATED: Meta("Saturated", "gauge", "warning"),
    State.UNRELIABLE: Meta("Unreliable", "circle-help", "warning"),
    State.DEGRADED: Meta("Degraded", "unplug", "warning"),
    State.WATCH: Meta("Watch", "eye", "info"),
    State.HEALTHY: Meta("Healthy", "circle-check", "good"),
}


def meta_of(state: State, severity: Severity | None) -> Meta:
    """A state as it is shown: in the tone of what is critical only while something is."""
    meta = STATE_META[state]
    if meta.tone == "critical" and severity is Severity.WARNING:
        return meta._replace(tone="warning")
    return meta


SEVERITY_META: dict[Severity, Meta] = {
    Severity.CRITICAL: Meta("Critical", "octagon-alert", "critical"),
    Severity.WARNING: Meta("Warning", "triangle-alert", "warning"),
    Severity.INFO: Meta("Info", "info", "info"),
}

OUTCOME_META: dict[Outcome, Meta] = {
    Outcome.RUNNING: Meta("Running", "loader", "active"),
    Outcome.DURABILITY_FAILED: Meta("Durability failed", "database-x", "critical"),
    Outcome.CANCELLED: Meta("Cancelled", "ban", "neutral"),
    Outcome.REFUSED: Meta("Refused", "hand", "neutral"),
    Outcome.TIMED_OUT: Meta("Timed out", "timer-off", "critical"),
    Outcome.NOT_NEEDED: Meta("Not needed", "minus", "neutral"),
    Outcome.SUMMARIZER_FAILED: Meta("Summarizer failed", "bot-off", "critical"),
    Outcome.FELL_BACK: Meta("Fell back", "scissors", "warning"),
    Outcome.NOT_COMPARABLE: Meta("Not comparable", "scale", "warning"),
    Outcome.REDUCED: Meta("Reduced", "arrow-down", "good"),
    Outcome.NOTHING_FOLDABLE: Meta("Nothing foldable", "fold-vertical", "warning"),
    Outcome.NO_PROGRESS: Meta("No progress", "equal", "critical"),
    Outcome.GREW: Meta("Grew", "arrow-up", "critical"),
    Outcome.UNKNOWN: Meta("Unknown", "circle-help", "neutral"),
}

RELIEF_META: dict[Relief, Meta] = {
    Relief.RELIEVED: Meta("Relieved", "check", "good"),
    Relief.NOT_RELIEVED: Meta("Not relieved", "x", "critical"),
    Relief.UNCONFIRMED: Meta("Unconfirmed", "clock", "neutral"),
}

CONNECTION_META: dict[Connection, Meta] = {
    Connection.LIVE: Meta("Live", "radio", "good"),
    Connection.LATE: Meta("Late", "clock-alert", "warning"),
    Connection.OFFLINE: Meta("Offline", "unplug", "warning"),
    Connection.CLOSED: Meta("Closed", "circle-stop", "neutral"),
    Connection.IMPORTED: Meta("Imported", "file-input", "neutral"),
    Connection.READ_ONLY: Meta("Read-only", "eye", "neutral"),
    Connection.POSTS: Meta("By HTTP", "send", "neutral"),
}

SOURCE_META: dict[Source, Meta] = {
    Source.PROVIDER: Meta("Provider", "badge-check", "good"),
    Source.ERROR: Meta("Error text", "file-warning", "warning"),
    Source.AGENT: Meta("Agent's count", "bot", "neutral"),
    Source.LOCAL: Meta("Local estimate", "calculator", "neutral"),
    Source.PENDING: Meta("Pending", "clock", "neutral"),
    Source.UNKNOWN: Meta("Unknown", "circle-help", "neutral"),
}

COMMAND_STATE_META: dict[str, Meta] = {
    "queued": Meta("Queued", "clock", "active"),
    "sent": Meta("Sent", "send", "active"),
    "received": Meta("Received", "inbox", "active"),
    "waiting": Meta("Waiting", "hourglass", "active"),
    "started": Meta("Started", "loader", "active"),
    "succeeded": Meta("Succeeded", "circle-check", "good"),
    "failed": Meta("Failed", "circle-x", "critical"),
    "refused": Meta("Refused", "hand", "warning"),
    "expired": Meta("Expired", "timer-off", "warning"),
    "cancelled": Meta("Cancelled", "ban", "neutral"),
    "unknown": Meta("Unknown", "circle-help", "warning"),
}
