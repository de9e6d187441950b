"""The tables of one chat as a rebuild gives them, to be compared with the stored ones.

Advice and suppression are left out of the comparison: they are said as of the batch's end, and a
rebuild has other batches. The state behind them is compared in the chat's own row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ctxhealth.core.changes import Changes, ItemChange
from ctxhealth.core.incidents_model import IncidentView
from ctxhealth.core.model import View
from ctxhealth.store.models import CompactionAttempt, Finding, Item, Latch, Reading

SAID_LATER = ("recommended", "discouraged", "suppressed_by")
SHOWN = 3
Key = Any
_READING = ("load", "source", "window", "budget", "trigger", "history", "local")


class Tables:
    """Keyed like the database's own unique constraints."""

    def __init__(self) -> None:
        self.attempts: dict[Key, Any] = {}
        self.latches: dict[Key, Any] = {}
        self.findings: dict[Key, Any] = {}
        self.readings: dict[Key, Any] = {}
        self.items: dict[Key, Any] = {}
        self.incidents: dict[int, IncidentView] = {}

    def apply(self, changes: Changes) -> None:
        """Take in what one event changed."""
        for attempt in changes.attempts.values():
            self.attempts[attempt.attempt] = _facts(attempt)
        for latch in changes.latches.values():
            self.latches[(latch.latch, latch.set_seq)] = _facts(latch)
        for finding in changes.findings.values():
            self.findings[(finding.code, finding.since_seq)] = _facts(finding)
        self.incidents.update(changes.incidents)
        for point in changes.readings:
            facts = msgspec.to_builtins(point)
            self.readings[point.chat_seq] = tuple(facts[name] for name in _READING)
        for change in changes.items:
            self._item(change)

    def _item(self, change: ItemChange) -> None:
        if change.op == "add":
            self._add(change)
        elif change.op == "clear":
            for item in self.items.values():
                item["removed"] = change.chat_seq if item["removed"] is None else item["removed"]
        elif change.id in self.items:
            item = self.items[change.id]
            if change.op == "move":
                item["place"] = change.block or ""
            elif item["removed"] is None:
                item["removed"] = change.chat_seq

    def _add(self, change: ItemChange) -> None:
        known = self.items.get(change.id)
        tokens = change.tokens
        if known is not None and tokens is None:
            tokens = known["tokens"]
        self.items[change.id] = {"tokens": tokens, "place": change.block or "", "removed": None}

    def differences(self, chat: int) -> Iterator[str]:
        """How the stored tables differ from these, a few of each."""
        yield from _compare("attempt", self.attempts, _views(CompactionAttempt, chat, "attempt"))
        yield from _compare("latch", self.latches, _views(Latch, chat, "latch", "set_seq"))
        yield from _compare("finding", self.findings, _views(Finding, chat, "code", "since_seq"))
        rows = Reading.objects.filter(chat_id=chat).values_list("chat_seq", *_READING)
        yield from _compare("reading", self.readings, {row[0]: tuple(row[1:]) for row in rows})
        items = Item.objects.filter(chat_id=chat)
        stored = {
            item: {"tokens": tokens, "place": place, "removed": removed}
            for item, tokens, place, removed in items.values_list(
                "item", "tokens", "place", "removed_seq"
            )
        }
        yield from _compare("item", self.items, stored)


def _facts(view: View) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(view)
    for name in SAID_LATER:
        facts.pop(name, None)
    # As JSON has it: tuples are lists.
    return dict(msgspec.json.decode(msgspec.json.encode(facts)))


def _views(table: Any, chat: int, *key: str) -> dict[Key, Any]:
    found = {}
    for row in table.objects.filter(chat_id=chat).values_list(*key, "view"):
        view = msgspec.json.decode(row[-1])
        for name in SAID_LATER:
            view.pop(name, None)
        found[row[0] if len(key) == 1 else tuple(row[:-1])] = view
    return found


def _compare(what: str, expected: Mapping[Key, Any], stored: Mapping[Key, Any]) -> Iterator[str]:
    missing = [key for key in expected if key not in stored]
    extra = [key for key in stored if key not in expected]
    if missing:
        yield f"{len(missing)} {what}s are missing: {missing[:SHOWN]}"
    if extra:
        yield f"{len(extra)} {what}s are not in the log: {extra[:SHOWN]}"
    other = [key for key in expected if key in stored and stored[key] != expected[key]]
    if other:
        key = other[0]
        yield f"{len(other)} {what}s differ, first {key}: {_difference(expected[key], stored[key])}"


def _difference(expected: Any, stored: Any) -> str:
    if not isinstance(expected, dict) or not isinstance(stored, dict):
        return f"stored {stored!r}, the fold gives {expected!r}"[:300]
    parts = [
        f"{name} is {stored.get(name)!r}, the fold gives {value!r}"
        for name, value in expected.items()
        if stored.get(name) != value
    ]
    return "; ".join(parts)[:300]
