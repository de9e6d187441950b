"""The timeline's data: the load over time and what happened beneath it, as plain lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ctxhealth.core.model import AttemptView, LatchView, ReadingPoint, Source
from ctxhealth.store.queries import CommandRow, EventRow
from ctxhealth.web import states
from ctxhealth.web.actions import ACTIONS
from ctxhealth.web.format import number, words

LANE_TYPES = (
    "turn.started", "turn.ended", "reply.empty", "model.failed", "guard.refused", "agent.stopped",
)  # fmt: skip
MEASURED = frozenset({Source.PROVIDER, Source.ERROR})


def series_of(
    points: Sequence[ReadingPoint],
    attempts: Iterable[AttemptView],
    latches: Iterable[LatchView],
    commands: Iterable[CommandRow],
    events: Sequence[EventRow],
    *,
    ended_at: int | None = None,
) -> dict[str, Any]:
    """Columns of the load series in ms and tokens (None unknown), and lanes of marks.

    What stands open in a chat that is over lasts until ``ended_at``, not until now.
    """
    return {
        "at": [point.at for point in points],
        "seq": [point.chat_seq for point in points],
        "load": [point.load for point in points],
        "measured": [point.source in MEASURED for point in points],
        "source": [point.source.value for point in points],
        "trigger": [point.trigger for point in points],
        "budget": [point.budget for point in points],
        "window": [point.window for point in points],
        "lanes": {
            "turns": _until(ended_at, _turns(events)),
            "compactions": [_attempt(a) for a in attempts if a.finished_at or a.started_at],
            "latches": _until(ended_at, [_latch(latch) for latch in latches]),
            "replies": [_trouble(event) for event in events if event.type in _TROUBLE],
            "commands": [_command(command) for command in commands],
        },
    }


_TROUBLE = {
    "reply.empty": "empty reply",
    "model.failed": "model call failed",
    "guard.refused": "guard refused to send",
    "agent.stopped": "agent stopped",
}


def _until(ended_at: int | None, bands: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**band, "to": band["to"] or ended_at} for band in bands]


def _turns(events: Iterable[EventRow]) -> list[dict[str, Any]]:
    turns: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.type not in ("turn.started", "turn.ended"):
            continue
        body = msgspec.json.decode(event.body)
        turn = str(body.get("turn"))
        if event.type == "turn.started":
            said = f"{body.get('kind', 'user')} turn"
            turns[turn] = {"at": event.at, "to": None, "seq": event.chat_seq, "says": said,
                           "tone": "info"}  # fmt: skip
        elif turn in turns:
            outcome = str(body.get("outcome"))
            turns[turn]["to"] = event.at
            turns[turn]["says"] += f", {outcome}"
            turns[turn]["tone"] = "neutral" if outcome in ("answered", "cancelled") else "critical"
    return list(turns.values())


def _attempt(attempt: AttemptView) -> dict[str, Any]:
    meta = states.outcome(attempt.outcome)
    return {
        "at": attempt.finished_at or attempt.started_at,
        "seq": attempt.finished_seq or attempt.started_seq,
        "tone": meta.tone,
        "says": f"{attempt.trigger} compaction: {meta.label.lower()}, "
        f"{number(attempt.before)} → {number(attempt.after)}",
    }


def _latch(latch: LatchView) -> dict[str, Any]:
    return {
        "at": latch.set_at,
        "to": latch.cleared_at,
        "seq": latch.set_seq,
        "tone": "critical" if latch.justified is False else "warning",
        "says": f"{words(latch.kind)} latch: {latch.why}",
    }


def _trouble(event: EventRow) -> dict[str, Any]:
    body = msgspec.json.decode(event.body)
    detail = body.get("error") or body.get("reason") or ""
    said = f"{_TROUBLE[event.type]}{': ' if detail else ''}{detail}"
    return {"at": event.at, "seq": event.chat_seq, "tone": "critical", "says": said[:300]}


def _command(command: CommandRow) -> dict[str, Any]:
    meta = states.command(command.state)
    action = ACTIONS.get(command.kind)
    label = action.label if action else words(command.kind)
    said = f"{label} by {command.by or 'somebody'}: {meta.label.lower()}"
    return {"at": command.created_at, "seq": None, "tone": meta.tone, "says": said}


def table_of(points: Sequence[ReadingPoint], series: dict[str, Any]) -> list[dict[str, Any]]:
    """Readings and marks in one order of time, newest first: the drawing as a table."""
    rows = [
        {
            "at": point.at,
            "seq": point.chat_seq,
            "load": point.load,
            "says": f"{point.source.value} reading",
            "trigger": point.trigger,
            "budget": point.budget,
        }
        for point in points
    ]
    for marks in series["lanes"].values():
        rows.extend({"at": m["at"], "seq": m["seq"], "says": m["says"]} for m in marks)
    return sorted(rows, key=lambda row: (row["at"] or 0, row["seq"] or 0), reverse=True)
