"""The demo's agents: each of its incidents is one, with its own root; the others give none."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxhealth.cli.replayed import Folded, Replay
from ctxhealth.client import Chat
from ctxhealth.core.incidents_model import IncidentView
from ctxhealth.core.incidents_view import incident_view
from ctxhealth.demo.agents import AGENTS, Role
from ctxhealth.demo.body import Body
from tests.wire.make_golden import Enough, Recorder

# Long enough for every incident to come and to be waited in.
RESTS = 40
ROOTS = {
    "nightly": "summarizer_empty",
    "inventory": "summarizer_quota",
    "billing": "latch_structural",
    "contract": "undercount",
    "parser": "summarizer_timeout",
}
# Of the healthy ones, which differ in nothing that matters here, the first of each agent.
ROLES = [agent.roles[0] for agent in AGENTS.values()]


def lived(role: Role, pressed: Mapping[int, str] = {}, rests: int = RESTS) -> Folded:
    """The chat as it stands when its agent has lived for a while.

    ``pressed``: the commands that somebody gives, by the number of the rest at which they arrive.
    """
    recorder: Any = Recorder()
    coming = iter(range(rests))

    class Life(role.loop):  # type: ignore[name-defined, misc]
        def rest(self, seconds: float) -> bool:
            number = next(coming, None)
            if number is None:
                raise Enough
            if number not in pressed:
                return False
            act = getattr(self, f"do_{pressed[number]}")
            act(SimpleNamespace(id=f"command{number}", args={}))
            return bool(super().rest(0))

    chat = Chat(recorder, role.spec.id)
    chat.opened(**role.spec.facts())
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Enough):
        Life(recorder, Body(chat, role.spec), Path(folder), 1.0).run()
    replay = Replay()
    for line in recorder.lines:
        replay.take(json.loads(line))
    return replay.chats[role.spec.id]


def incidents(folded: Folded) -> list[IncidentView]:
    views = [*folded.changes.incidents_closed]
    if folded.state.incident is not None:
        views.append(incident_view(folded.state, folded.state.incident))
    return views


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.spec.id)
def test_an_agent_of_the_demo_gives_its_one_incident_or_none(role: Role) -> None:
    found = incidents(lived(role))
    assert [(view.root, view.closed_at) for view in found] == [
        (root, None) for chat, root in ROOTS.items() if chat == role.spec.id
    ]


# With every turn its history grows: by then its window is full.
LEFT_ALONE = 72


def test_an_agent_left_alone_until_its_window_is_full_ends_its_turn_and_can_be_helped() -> None:
    role = next(role for role in ROLES if role.spec.id == "parser")
    alone = lived(role, rests=LEFT_ALONE)
    assert alone.state.turns.last_error is not None
    assert alone.state.findings["over_window"].severity == "critical"
    pressed = {LEFT_ALONE: "compact_fallback", LEFT_ALONE + 1: "continue"}
    helped = lived(role, pressed, LEFT_ALONE + 6)
    assert helped.state.turns.last_error is None
    assert helped.state.severity != "critical"
