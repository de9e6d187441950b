"""What stands in the audit trail, in an operator's words."""

from __future__ import annotations

from dataclasses import dataclass

from ctxhealth.store.queries.audit import AuditRow
from ctxhealth.web.actions import ACTIONS
from ctxhealth.web.format import words

_WORDS = {
    "login": ("user", "Signed in"),
    "login.link": ("key-round", "Signed in by link"),
    "logout": ("log-out", "Signed out"),
    "token.create": ("key-round", "Made a token"),
    "token.revoke": ("ban", "Revoked a token"),
    "token.rotate": ("refresh-cw", "Rotated a token"),
    "user.role": ("user", "Set a role"),
    "user.disable": ("ban", "Disabled a person"),
    "window_override.set": ("maximize", "Stated a window"),
    "window_override.end": ("maximize", "Withdrew a window"),
    "model_table.put": ("maximize", "Put a model table"),
    "setting.set": ("gauge", "Set a setting"),
    "setting.reset": ("gauge", "Reset a setting"),
    "retention.trim": ("trash-2", "Deleted quiet chats"),
    "incident.owner": ("hand", "Gave an incident to"),
    "incident.verdict": ("flag", "Gave a verdict"),
    "incident.review": ("eye", "Set a stretch aside"),
    "incident.note_add": ("pencil", "Wrote a note"),
    "incident.note_edit": ("pencil", "Edited a note"),
    "incident.note_delete": ("trash-2", "Deleted a note"),
    "cause_group.owner": ("layers", "Gave a cause to"),
    "export.report": ("download", "Took a report"),
    "export.bundle": ("archive", "Took a bundle"),
    "bundle.import": ("file-input", "Imported a bundle"),
    "command.cancel": ("ban", "Cancelled a command"),
    "import.file": ("file-input", "Brought a file"),
    "silence.set": ("clock", "Silenced a cause"),
    "silence.end": ("clock", "Ended a silence"),
    "oncall.note": ("file-text", "Wrote the hand-over note"),
    "command.ping": ("radio", "Pinged the agent"),
}


@dataclass(frozen=True, slots=True)
class AuditLine:
    """``tone`` is of the result: good, warning or neutral."""

    row: AuditRow
    icon: str
    action: str
    result: str
    tone: str

    @property
    def later(self) -> bool:
        """Whether the command has moved on since this was written."""
        return self.row.command_state is not None and self.row.command_state != self.row.result


def line_of(row: AuditRow) -> AuditLine:
    icon, action = _action(row.action)
    return AuditLine(row, icon, action, words(row.result), _tone(row.result))


def _action(name: str) -> tuple[str, str]:
    if name in _WORDS:
        return _WORDS[name]
    kind = name.removeprefix("command.")
    if name != kind and kind in ACTIONS:
        return ACTIONS[kind].icon, f"Pressed {ACTIONS[kind].label}"
    return "circle-dot", words(name.replace(".", " "))


def _tone(result: str) -> str:
    if result.startswith(("refused", "failed")):
        return "warning"
    return "good" if result == "done" else "neutral"
