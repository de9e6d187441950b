"""The backup before a fallback, and the way back."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ctxhealth.engine import (
    History,
    HistoryError,
    backup_document,
    fall_back,
    history_from_backup,
)

from .histories import per_four, turn

Document = dict[str, object]


def _history() -> History:
    past = tuple(turn(f"t{n}", 20, 900) for n in range(3))
    return History(100, 50, 0, (), past, turn("now", 10, 10))


def test_a_backup_gives_the_history_back() -> None:
    history = _history()
    document = backup_document(history, "c-1", 1_764_500_000_000)
    assert (document["command"], document["at_ms"]) == ("c-1", 1_764_500_000_000)
    assert history_from_backup(json.loads(json.dumps(document))) == history


def test_the_backup_is_saved_before_anything_changes() -> None:
    history, saved = _history(), list[Document]()
    after, plan = fall_back(
        history, target=1_000, save=saved.append, command_id="c-1", at_ms=5, count=per_four
    )
    assert plan.outcome == "fell_back"
    assert after.total() == plan.after < history.total()
    assert [history_from_backup(document) for document in saved] == [history]


def test_a_backup_that_cannot_be_saved_stops_the_fallback() -> None:
    def full(document: Document) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        fall_back(_history(), target=1_000, save=full, command_id="c-1", at_ms=5)


def test_where_nothing_changes_nothing_is_saved() -> None:
    history, saved = _history(), list[Document]()
    after, plan = fall_back(history, target=9_000, save=saved.append, command_id="c", at_ms=5)
    assert (after, plan.outcome, saved) == (history, "not_needed", [])


def _without_text(document: Document) -> Document:
    text = json.dumps(document).replace("what was found", "what was lost", 1)
    return json.loads(text)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda document: {**document, "format": "other"}, "format: must be 'ctxhealth-history'"),
        (lambda document: {**document, "version": 2}, "version: is 2, this release reads 1"),
        (lambda document: {**document, "revision": "0" * 64}, "revision: does not match"),
        (_without_text, "revision: does not match"),
        (lambda document: {**document, "history": None}, "history: must be an object"),
        (lambda document: [document], "history: must be an object, not list"),
    ],
)
def test_a_damaged_backup_is_refused(damage: Callable[[Document], object], message: str) -> None:
    document = json.loads(json.dumps(backup_document(_history(), "c-1", 5)))
    with pytest.raises(HistoryError, match=message):
        history_from_backup(damage(document))
