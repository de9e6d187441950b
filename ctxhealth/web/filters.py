"""The board's filters and order as they stand in an address, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from ctxhealth.core.model import Outcome, State
from ctxhealth.store.queries import BoardFilters
from ctxhealth.store.queries.board_order import ORDERS
from ctxhealth.web import states

NAMES = ("state", "agent", "model", "outcome", "latch", "waiting", "cause", "q", "sort")
MAX_VALUE = 200
_YES_NO = {"yes": True, "no": False}
_STATES = frozenset(state.value for state in State)
_OUTCOMES = frozenset(outcome.value for outcome in Outcome)


@dataclass(frozen=True, slots=True)
class Select:
    """One drop-down: ``options`` are (value, text)."""

    name: str
    label: str
    any: str
    options: tuple[tuple[str, str], ...]
    chosen: str


def query_of(params: Mapping[str, str]) -> dict[str, str]:
    """The known filters that are set, cut to a sane length; anything else is left out."""
    found = {name: params.get(name, "").strip()[:MAX_VALUE] for name in NAMES}
    if found["sort"] not in ORDERS:
        found["sort"] = ""
    return {name: value for name, value in found.items() if value}


def filters_of(query: Mapping[str, str]) -> BoardFilters:
    """For ``queries.board_page``; words that name no state or outcome are ignored."""
    outcome = query.get("outcome", "")
    return BoardFilters(
        states=tuple(s for s in query.get("state", "").split(",") if s in _STATES),
        agent=query.get("agent", ""),
        model=query.get("model", ""),
        outcome=outcome if outcome in _OUTCOMES else "",
        latched=_YES_NO.get(query.get("latch", "")),
        waiting=_YES_NO.get(query.get("waiting", "")),
        cause=_number(query.get("cause", "")),
        q=query.get("q", ""),
        sort=query.get("sort", ""),
    )


def _number(text: str) -> int | None:
    """Nothing but digits is a number; what is none fits no group that exists."""
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def link(query: Mapping[str, str], **changes: str) -> str:
    """The query string with ``changes``; an empty value takes a filter off."""
    merged = {**query, **changes}
    return urlencode({name: value for name, value in merged.items() if value})


def selects_of(query: Mapping[str, str], choices: Mapping[str, list[str]]) -> list[Select]:
    """The drop-downs; a chosen value that no chat has any more stays choosable."""
    outcomes = tuple((o.value, states.outcome(o).label) for o in Outcome)
    return [
        _select(
            "agent", "Agent", "all agents", _same(choices["agents"], query.get("agent")), query
        ),
        _select(
            "model", "Model", "all models", _same(choices["models"], query.get("model")), query
        ),
        _select("outcome", "Last compaction", "any outcome", outcomes, query),
        _select("latch", "Latch", "latched or not", (("yes", "latched"), ("no", "free")), query),
        _select("waiting", "User", "waiting or not", (("yes", "user waits"),), query),
    ]


def _same(values: list[str], chosen: str | None) -> tuple[tuple[str, str], ...]:
    listed = values if not chosen or chosen in values else [chosen, *values]
    return tuple((value, value) for value in listed)


def _select(
    name: str,
    label: str,
    any_text: str,
    options: tuple[tuple[str, str], ...],
    query: Mapping[str, str],
) -> Select:
    return Select(name, label, any_text, options, query.get(name, ""))
