"""docs/incidents.md out of the cases: what each must show, and where it differs from the report."""

from __future__ import annotations

import re
from typing import Any

from ctxhealth.core.incidents_causes import LEADS_TO
from tests.incidents.telling import CASES, Case

_HEAD = """# Public incidents

Generated from the cases in `tests/incidents` by `python -m tests.incidents.make`; do not edit.

Each is a failure that somebody reported in public, told as the events its agent would have sent,
with the numbers of the report. What a report does not state stays absent: nothing is invented to
make a finding fire. Where a scale had to be chosen, the note says so. A test folds every stream
and compares state, severity, findings that must fire and findings that must not, latches and
whether they are justified, outcomes, relief, the recommended and the discouraged action, the
numbers shown, and that it gives exactly one incident with the expected root, or none where nothing
was critical.

    ctxhealth replay tests/incidents/C23-maka-structural.jsonl
    ctxhealth replay tests/incidents/C23-maka-structural.jsonl --json
    ctxhealth replay tests/incidents/C23-maka-structural.jsonl --url http://127.0.0.1:8000

The first prints the diagnosis: headline, findings with advice, latches, attempts, numbers. With
`--url` the stream is played into a running server through the SDK, as a chat of the agent
`replay` (`--agent`), under a new name each time (`--chat`); the token comes from
`CTXHEALTH_TOKEN`, `--token-file` or `--token`. The events arrive at once with their distances
kept, so that the last is now; `--speed 1` takes the time it took. A session file of an agent
product is taken too. `python3 manage.py replay` is the same command from a checkout. Exit codes:
0 done, 2 not a stream or session, 3 refused by the server or no connection.

A `.jsonl` file holds one event a line; `server.connected` and `server.tick` stand for what the
server itself adds, and are not played. Beside each, `.expect.json` holds what must be seen after
which line.
"""
_STATES = """## The cases

Of several moments that are checked the last is shown. *Muted* findings are explained by another
one.

| case | report | what happened | state | findings | latch | root of its incident | do | not |
|---|---|---|---|---|---|---|---|---|
"""
_CAUSES = """## Incidents

An incident opens when a chat gets a critical finding, one at a time, and closes when the chat has
been healthy, watched or recovered with its user answered for 3 requests or 10 minutes; a chat that
is closed, and a transcript that nobody has written for an hour, end theirs. Its chain holds what
was true since the first evidence that still counts: attempts that failed, latches, findings, empty
replies, the stop, and the commands that people gave. The **root** is what stands furthest up in
the order below of all that leads, in any number of steps, to the critical finding that opened it,
and that came no later. A later critical finding moves the root where what led to that one stands
further up and leads to the old root too: an overflow opens it, the summarizer then fails.

Chats whose incidents share a cause form one group, alerted once: the same failure of the same
summarizer or provider, across all agents; anything else within one agent. The group closes with
its last open incident and opens again, without a second alert, where the same cause comes back
within 10 minutes. An incident keeps how it was judged when it closed, with the version of the
fold, beside how the present rules see it; notes and verdicts stay whatever the rules.

Figures: *start* is the first evidence of the root, *detected* the critical finding, *acted* the
first command of a person, *recovered* since when nothing of it is true any more, *answered* the
first answered turn after the last critical finding. *Burnt* are the input tokens of summarizers in
attempts that failed or freed nothing; calls whose usage nobody told are counted beside it.

| cause | leads to |
|---|---|
"""
_NOTES = """## Where a fixture or its expectation differs from the report

"""
_LEFT_OUT = """## Cases and variants without a fixture

| case | reason |
|---|---|
| C08, first report | less than 0.5% per cycle, no sizes |
| C22, 661 to 1,752 | nothing names a second scope; by its numbers it grew |
| C24, C26, C36, C67, further reports | the same sequence without other numbers |
| C31 | which entry of a tree is whose parent is a matter of reading the file |
| C34, second report | a divisor of a character count; no request with numbers |
| C38, 108.3k of 150k | a gauge at one moment; nothing happened |
| C40, HTTP 500 | the user message was cut; neither counts nor items tell |
| C41, 128k for a model of a million | no request above 128k is stated |
| C55, C56, further reports | the same sequence without other numbers |
| C68, C69, C72 | replayed, repeated and torn lines: tests of the readers |
| C73 | size of files: tests and benchmarks of the readers and the pages |
"""


def page() -> str:
    cases = sorted(CASES, key=lambda case: case.name)
    rows = "".join(_row(case) for case in cases)
    notes = "".join(f"- **{case.name}**: {case.note}\n" for case in cases if case.note)
    return "\n".join([_HEAD, _CAUSES + _causes(), _STATES + rows, _NOTES + notes, _LEFT_OUT])


def _causes() -> str:
    """The order of causes, upstream first."""
    told = ((code, ", ".join(f"`{effect}`" for effect in LEADS_TO[code])) for code in LEADS_TO)
    return "".join(f"| `{code}` | {effects or 'nothing'} |\n" for code, effects in told)


def _row(case: Case) -> str:
    told: dict[str, Any] = {}
    for check in case.checks:
        told.update({key: value for key, value in check.items() if value})
    cells = [
        case.name,
        _link(case.source),
        case.title,
        told.get("state", ""),
        _findings(told),
        ", ".join(f"{kind}, {_JUSTIFIED[why]}" for kind, why in told.get("latches", [])),
        f"`{told['incident']}`" if told.get("incident") else "none",
        _words([told["action"]] if "action" in told else list(told.get("advice", {}).values())),
        _words(told.get("against", [])),
    ]
    return f"| {' | '.join(cells)} |\n"


_JUSTIFIED = {True: "justified", False: "not justified", None: "not known"}


def _findings(check: dict[str, Any]) -> str:
    muted = check.get("muted", {})
    told = [f"`{code}` {s}" for code, s in check.get("fires", {}).items() if code not in muted]
    return ", ".join([*told, *(f"`{code}` muted" for code in muted)])


def _words(actions: list[str]) -> str:
    return ", ".join("a step by hand" if name == "manual" else f"`{name}`" for name in actions)


def _link(source: str) -> str:
    """The report's address where it is an issue or a pull request of a named repository."""
    found = re.match(r"([\w.-]+/[\w.-]+)(?: PR)?#(\d+)$", source)
    if found is None:
        return source
    kind = "pull" if " PR#" in source else "issues"
    return f"[{source}](https://github.com/{found[1]}/{kind}/{found[2]})"
