"""docs/findings.md out of the catalogue: ``python -m ctxhealth.core.findings.document``."""

from __future__ import annotations

import sys
from dataclasses import fields

from ctxhealth.core.findings.catalogue import DEFINITIONS
from ctxhealth.core.findings.definition import Definition
from ctxhealth.core.model import State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.states import STATE_META

_HEAD = """# Findings

Generated from the catalogue by `python -m ctxhealth.core.findings.document`; do not edit.

A finding is a condition of one chat with a severity, a sentence with its numbers, the events it
rests on, and advice. What is not known never fires: a finding whose facts are missing stays
closed. The **state** of a chat is that of its first critical finding in the order below, else of
its first warning; remarks (info) alone make it *watch*, none at all *healthy*. A cause outranks
its symptoms: a finding that another one explains is shown with the code that explains it and does
not count. After a command succeeded the chat is *recovering* until a later request and an answer
decide, and only findings opened since then count.

Advice is something that can be done in this chat. A command that its agent does not offer, or any
command in a read-only chat, gives way to another one to the same end or to a written step in the
words of its runtime. A command of an agent that is only offline stays and says so.
"""

_FOOT = """## Thresholds

Defaults; tokens and counts as they are, shares from 0 to 1, times in milliseconds.

| threshold | default |
|---|---|
"""


def document() -> str:
    """The whole page."""
    parts = [_HEAD]
    for state in State:
        found = [definition for definition in DEFINITIONS if definition.state is state]
        if found:
            parts.append(f"## {STATE_META[state].label}\n")
            parts += [_entry(definition) for definition in found]
    parts.append(_FOOT + _thresholds())
    return "\n".join(parts)


def _entry(definition: Definition) -> str:
    lines = [
        f"### `{definition.code}`: {definition.title}",
        "",
        definition.doc,
        "",
        f"- Severity: {definition.severity}.",
    ]
    if definition.mild_state is not None:
        label = STATE_META[definition.mild_state].label.lower()
        lines.append(f"- As a warning its state is *{label}*.")
    if definition.actions:
        actions = ", ".join(_action(action) for action in definition.actions)
        lines.append(f"- What helps: {actions}.")
    return "\n".join(lines) + "\n"


def _action(action: str) -> str:
    return "a written step" if action == "manual" else f"`{action}`"


def _thresholds() -> str:
    values = Thresholds()
    rows = [f"| `{field.name}` | {getattr(values, field.name):,} |" for field in fields(Thresholds)]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
