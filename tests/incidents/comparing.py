"""What the core says of a folded stream, against what is expected of it."""

from __future__ import annotations

from typing import Any

from ctxhealth.cli.replayed import Folded, Replay
from ctxhealth.core.findings.judge import suppressor
from ctxhealth.core.incidents_view import incident_view
from ctxhealth.core.model import AttemptView, ChatDetail

Expected = dict[str, Any]


def compare(replay: Replay, expected: Expected) -> list[str]:
    """Every difference, in words; an empty list is a pass."""
    folded = replay.chats[expected["chat"]]
    page = folded.page(replay.rules)
    found: list[str] = []
    if folded.changes.oddities or folded.refused:
        found.append(f"odd: {folded.changes.oddities} {folded.refused}")
    for key, want in expected.items():
        if key in _CHECKS:
            found += [f"{key}: {told}" for told in _CHECKS[key](folded, page, want)]
        elif key not in ("after", "chat"):
            found.append(f"{key} is not a check")
    return found


def _state(folded: Folded, page: ChatDetail, want: str) -> list[str]:
    return _same(page.summary.state.value, want)


def _severity(folded: Folded, page: ChatDetail, want: str) -> list[str]:
    return _same(page.summary.severity, want)


def _fires(folded: Folded, page: ChatDetail, want: dict[str, str]) -> list[str]:
    open_ = {code: finding.severity for code, finding in folded.state.findings.items()}
    return [f"{code} is {open_.get(code)}, not {s}" for code, s in want.items()
            if open_.get(code) != s]  # fmt: skip


def _silent(folded: Folded, page: ChatDetail, want: list[str]) -> list[str]:
    return [f"{code} fires" for code in want if code in folded.state.findings]


def _muted(folded: Folded, page: ChatDetail, want: dict[str, str]) -> list[str]:
    return [
        f"{code} is explained by {suppressor(folded.state, code)}, not {by}"
        if code in folded.state.findings
        else f"{code} does not fire"
        for code, by in want.items()
        if code not in folded.state.findings or suppressor(folded.state, code) != by
    ]


def _latches(folded: Folded, page: ChatDetail, want: list[list[Any]]) -> list[str]:
    return _same([[latch.kind, latch.justified] for latch in page.latches], want)


def _attempts(folded: Folded) -> list[AttemptView]:
    return list(folded.changes.attempts.values())


def _outcomes(folded: Folded, page: ChatDetail, want: list[str]) -> list[str]:
    return _same([view.outcome.value for view in _attempts(folded)], want)


def _counts(folded: Folded, page: ChatDetail, want: dict[str, int]) -> list[str]:
    return _same(dict(page.summary.outcomes), want)


def _freed(folded: Folded, page: ChatDetail, want: list[int | None]) -> list[str]:
    return _same([view.freed for view in _attempts(folded)], want)


def _relief(folded: Folded, page: ChatDetail, want: list[str | None]) -> list[str]:
    told = [view.relief.value for view in _attempts(folded)]
    pairs = list(zip(told, want, strict=False))
    return [f"{told}, not {want}"] if any(w is not None and w != g for g, w in pairs) else []


def _action(folded: Folded, page: ChatDetail, want: str) -> list[str]:
    advice = page.headline_advice
    return _same(advice.action if advice else None, want)


def _advice(folded: Folded, page: ChatDetail, want: dict[str, str]) -> list[str]:
    given = {view.code: view.recommended[0].action for view in page.findings if view.recommended}
    return [f"{code}: {given.get(code)}, not {a}" for code, a in want.items()
            if given.get(code) != a]  # fmt: skip


def _against(folded: Folded, page: ChatDetail, want: list[str]) -> list[str]:
    told = {advice.action for view in page.findings for advice in view.discouraged}
    told |= {advice.action for latch in page.latches for advice in latch.discouraged}
    return [f"{action} is not discouraged" for action in want if action not in told]


def _said(page: ChatDetail) -> str:
    return "\n".join([page.headline, *(view.sentence for view in page.findings)])


def _says(folded: Folded, page: ChatDetail, want: list[str]) -> list[str]:
    return [f"{text!r} is not said in {_said(page)!r}" for text in want if text not in _said(page)]


def _headline(folded: Folded, page: ChatDetail, want: list[str]) -> list[str]:
    return [f"{text!r} is not in {page.headline!r}" for text in want if text not in page.headline]


def _unsaid(folded: Folded, page: ChatDetail, want: list[str]) -> list[str]:
    return [f"{text!r} is said" for text in want if text in _said(page)]


def _shows(folded: Folded, page: ChatDetail, want: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for path, value in want.items():
        got: Any = page.summary
        for name in path.split("."):
            got = getattr(got, name)
        if got != value:
            found.append(f"{path} is {got!r}, not {value!r}")
    return found


def _ratio(folded: Folded, page: ChatDetail, want: float) -> list[str]:
    return _same(round(page.summary.calibration or 0, 2), want)


def _order(folded: Folded, page: ChatDetail, want: list[str]) -> list[str]:
    since = {code: finding.since_seq for code, finding in folded.state.findings.items()}
    return _same(sorted(want, key=lambda code: since.get(code, 0)), want)


def _opened_once(folded: Folded, page: ChatDetail, want: list[str]) -> list[str]:
    closed = {view.code for view in folded.changes.findings_closed}
    return [f"{code} closed and opened again" for code in want if code in closed]


def _incident(folded: Folded, page: ChatDetail, want: str | None) -> list[str]:
    """The roots of all incidents that the chat has had; at most one is ever expected."""
    views = [*folded.changes.incidents_closed]
    if folded.state.incident is not None:
        views.append(incident_view(folded.state, folded.state.incident))
    return _same([view.root for view in views], [] if want is None else [want])


def _same(got: object, want: object) -> list[str]:
    return [] if got == want else [f"{got!r}, not {want!r}"]


_CHECKS = {
    "state": _state, "severity": _severity, "fires": _fires, "silent": _silent, "muted": _muted,
    "latches": _latches, "outcomes": _outcomes, "counts": _counts, "freed": _freed,
    "relief": _relief, "action": _action, "advice": _advice, "against": _against, "says": _says,
    "unsaid": _unsaid, "shows": _shows, "headline": _headline, "ratio": _ratio, "order": _order,
    "opened_once": _opened_once, "incident": _incident,
}  # fmt: skip
