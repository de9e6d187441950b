"""An incident as Markdown: what a page shows, in the order in which somebody reads a report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ctxhealth.web.format import duration, moment, number
from ctxhealth.web.incidents_load import Incident, Stretch
from ctxhealth.web.incidents_moment import Moment
from ctxhealth.web.incidents_page import Act, IncidentPage

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart's file and what is said of it."""

    file: str
    title: str
    moment: Moment | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that goes into a report; ``link`` is the page, ``made_at`` in ms."""

    found: Incident
    stretch: Stretch
    pictures: tuple[Picture, ...]
    link: str
    made_at: int
    made_by: str

    @property
    def page(self) -> IncidentPage:
        return self.found.page


def utc(at: int | None) -> str:
    """2026-11-30 14:05:00 UTC."""
    value = moment(at)
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if value else "?"


def markdown_of(report: Report) -> str:
    parts = (_head(report), _figures(report), _chain(report), _pictures(report), _acts(report),
             _verdict(report), _judged(report), _notes(report), _foot(report))  # fmt: skip
    return "\n\n".join("\n".join(part) for part in map(list, parts) if part) + "\n"


def _head(report: Report) -> Iterator[str]:
    page, chat = report.page, report.found.chat
    title = chat.summary.title or chat.external_id
    kind = "Review" if page.review else "Incident"
    yield f"# {kind} {page.detail.row.id}: {escaped(title)}"
    yield ""
    if page.sentence:
        yield f"**{escaped(page.sentence)}**"
        yield ""
    state = page.state.label if page.state else "review"
    yield f"- State at its worst: {state}{' (still open)' if page.open else ''}"
    if page.cause:
        yield f"- Cause: {escaped(page.cause)}"
    model = chat.summary.model or "unknown"
    yield f"- Chat: {escaped(chat.external_id)} of agent {escaped(chat.agent)}, model {model}"
    if page.detail.row.owner:
        yield f"- Taken care of by: {escaped(page.detail.row.owner)}"
    if report.found.came:
        came = report.found.came
        yield f"- Imported {utc(came.imported_at)} from a bundle of {utc(came.exported_at)}"
    yield f"- Page: {report.link}"


def _figures(report: Report) -> Iterator[str]:
    yield "## Figures"
    yield ""
    yield "| figure | value | when | note |"
    yield "|---|---|---|---|"
    for figure in report.page.figures:
        when = utc(figure.at) if figure.at is not None else ""
        yield f"| {figure.label} | {escaped(figure.value)} | {when} | {escaped(figure.note)} |"


def _chain(report: Report) -> Iterator[str]:
    if not report.page.chain:
        return
    yield "## Cause chain"
    yield ""
    for place, each in enumerate(report.page.chain, start=1):
        link = each.link
        root = " **(root)**" if link.root else ""
        times = f" ×{link.count}" if link.count > 1 else ""
        lasted = f", lasted {each.lasted}" if each.lasted else ""
        yield (
            f"{place}. {utc(link.at)}: {escaped(each.title)}{times}{root}: "
            f"{escaped(link.sentence)} (event {link.seq}{lasted})"
        )
    if report.page.lost_links:
        yield f"\n{number(report.page.lost_links)} further links were too many to keep."


def _pictures(report: Report) -> Iterator[str]:
    yield "## What happened"
    for picture in report.pictures:
        yield ""
        yield f"### {escaped(picture.title)}"
        yield ""
        yield f"![{escaped(picture.title)}]({picture.file})"
        if picture.moment is not None:
            yield ""
            yield escaped(picture.moment.detail.headline or "Nothing was wrong.")
            for finding in picture.moment.findings:
                yield f"- {finding.severity.value}: {escaped(finding.sentence)}"


def _acts(report: Report) -> Iterator[str]:
    yield "## What people did"
    yield ""
    if not report.page.acts:
        yield "Nobody did anything."
        return
    yield "| when | who | what | result | why |"
    yield "|---|---|---|---|---|"
    for act in report.page.acts:
        yield _act(act)


def _act(act: Act) -> str:
    if act.receipt is not None:
        command = act.receipt.command
        who, what = command.by or "somebody", act.receipt.action.label
        result = " ".join(filter(None, (act.receipt.state.label, act.receipt.result)))
        why = command.reason
    else:
        assert act.line is not None
        who, what = act.line.row.by or "the server", act.line.action
        result, why = act.line.result, act.line.row.reason
    cells = (utc(act.at), who, what, result, why)
    return "| " + " | ".join(escaped(cell) for cell in cells) + " |"


def _verdict(report: Report) -> Iterator[str]:
    detail = report.page.detail
    yield "## Verdict"
    yield ""
    if not detail.verdict:
        yield "None yet."
        return
    text = f": {escaped(detail.verdict_text)}" if detail.verdict_text else ""
    who = f"{escaped(detail.verdict_by)}, {utc(detail.verdict_at)}"
    yield f"**{report.page.verdict}**{text} ({who})"


def _judged(report: Report) -> Iterator[str]:
    page = report.page
    if not page.judgements:
        return
    yield f"## As judged then (core {page.judged_by}) and now (core {page.now_by or 'none'})"
    yield ""
    if not page.changed:
        yield "The same."
        return
    yield "| | then | now |"
    yield "|---|---|---|"
    for each in page.judgements:
        yield f"| {each.name} | {escaped(each.then)} | {escaped(each.now)} |"


def _notes(report: Report) -> Iterator[str]:
    yield "## Notes"
    if not report.page.detail.notes:
        yield "\nNone."
    for note in report.page.detail.notes:
        edited = f", edited {utc(note.edited_at)}" if note.edited_at else ""
        yield f"\n### {escaped(note.by or 'somebody')}, {utc(note.at)}{edited}\n\n{note.text}"


def _foot(report: Report) -> Iterator[str]:
    within = report.stretch.within
    took = duration(within.last_at - within.first_at)
    yield "---"
    yield ""
    yield (
        f"Made {utc(report.made_at)} by {escaped(report.made_by)} from events {within.first} to "
        f"{within.last} ({took}). All times are UTC; `?` is not known, `~` is estimated."
    )


def escaped(text: str) -> str:
    """As it is, whatever it holds: no markup, no new cell, no new line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
