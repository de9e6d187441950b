"""The one time axis of a review: load above, lanes of what happened beneath; pure geometry.

Places along the axis are per cent of its width, heights are pixels, so that text never stretches
and the same drawing fits a page, a print and a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ctxhealth.core.model import FindingView, ReadingPoint
from ctxhealth.web import states
from ctxhealth.web.format import moment, number, plural, words
from ctxhealth.web.series import MEASURED

LANES = ("turns", "compactions", "latches", "replies", "commands")
TITLES = {"replies": "empties, errors"}
STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200,
    86_400, 172_800, 604_800, 2_592_000, 31_536_000,
)  # fmt: skip
TICKS = 8
SHORTEST_MS = 10_000  # one moment alone still gets an axis
LEAST_BAND = 0.35  # per cent: a band that is short is still seen
MOST_MARKS = 400  # of one lane; more than the eye tells apart
MOST_ROWS = 10  # of findings
MARGIN = 0.015  # of the span, so that the first and the last mark stand whole


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: where, how grave, in words; ``seq`` is its event, None where it has none."""

    x: float
    at: int
    seq: int | None
    tone: str
    says: str


@dataclass(frozen=True, slots=True)
class Band:
    """Something that lasted; ``label`` is drawn beside it where there is room."""

    x: float
    width: float
    at: int
    seq: int | None
    tone: str
    says: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """One row beneath the load. ``more`` marks were too many to draw."""

    name: str
    title: str
    bands: tuple[Band, ...] = ()
    marks: tuple[Mark, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Point:
    """``y`` from 0 at the foot to 1 at the top; None where the load was not known."""

    x: float
    y: float | None
    measured: bool
    beyond: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A limit over time: ``points`` are (x, y) of its steps, ``value`` its last size."""

    kind: str
    points: tuple[tuple[float, float | None], ...]
    value: int | None


@dataclass(frozen=True, slots=True)
class Axis:
    """``first`` and ``last`` are the ends in ms, ``ticks`` (x, text), ``levels`` (y, text)."""

    first: int
    last: int
    points: tuple[Point, ...]
    lines: tuple[Line, ...]
    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]
    name: str

    def x(self, at: int) -> float:
        return _share(at, self.first, self.last)

    def moments(self) -> list[tuple[int, int]]:
        """(event, ms) of everything drawn that has an event, in the order of the log."""
        found: dict[int, int] = {}
        for lane in self.lanes:
            drawn: tuple[Band | Mark, ...] = (*lane.bands, *lane.marks)
            found.update((each.seq, each.at) for each in drawn if each.seq is not None)
        return sorted(found.items())


def axis_of(
    points: Sequence[ReadingPoint],
    lanes: dict[str, list[dict[str, Any]]],
    findings: Iterable[FindingView],
    *,
    first: int,
    last: int,
) -> Axis:
    """The drawing between two moments (ms). ``lanes`` are those of ``series.series_of``."""
    first, last = _padded(first, last)
    scale = _Scale(points)
    rows = [_lane(name, lanes.get(name, []), first, last) for name in LANES]
    return Axis(
        first=first,
        last=last,
        points=tuple(_points(points, scale, first, last)),
        lines=tuple(_lines(points, scale, first, last)),
        lanes=(*rows, *_finding_rows(list(findings), first, last)),
        ticks=tuple(_ticks(first, last)),
        levels=tuple(scale.levels()),
        name=_name(points, lanes, first, last),
    )


def _padded(first: int, last: int) -> tuple[int, int]:
    last = max(last, first + SHORTEST_MS)
    margin = int((last - first) * MARGIN)
    return first - margin, last + margin


def _share(at: int, first: int, last: int) -> float:
    return round(100 * (at - first) / (last - first), 3)


class _Scale:
    """Tokens to heights. A count beyond twice every limit cannot be a prompt: it stands at the
    edge with its number and leaves the scale to the others, as on the chat's own timeline."""

    def __init__(self, points: Sequence[ReadingPoint]) -> None:
        limits = [v for p in points for v in (p.window, p.budget, p.trigger) if v]
        self.ceiling = 2 * max(limits) if limits else None
        drawn = [v for p in points for v in (p.load, p.trigger, p.budget) if v]
        drawn = [v for v in drawn if self.ceiling is None or v <= self.ceiling]
        self.top = 1.08 * max([1_000, *drawn])

    def beyond(self, value: int | None) -> bool:
        return value is not None and self.ceiling is not None and value > self.ceiling

    def y(self, value: int | None) -> float | None:
        return None if value is None else round(min(1.0, value / self.top), 4)

    def levels(self) -> Iterator[tuple[float, str]]:
        step = next(s * 10**e for e in range(2, 15) for s in (1, 2, 5) if s * 10**e * 5 > self.top)
        for value in range(step, int(self.top), step):
            yield round(value / self.top, 4), f"{value // 1000}k" if step >= 1000 else str(value)


def _points(
    points: Sequence[ReadingPoint], scale: _Scale, first: int, last: int
) -> Iterator[Point]:
    for point in points:
        beyond = scale.beyond(point.load)
        yield Point(
            x=_share(point.at, first, last),
            y=None if beyond else scale.y(point.load),
            measured=point.source in MEASURED,
            beyond=point.load if beyond else None,
        )


def _lines(points: Sequence[ReadingPoint], scale: _Scale, first: int, last: int) -> Iterator[Line]:
    for kind in ("window", "budget", "trigger"):
        sizes = [(point.at, getattr(point, kind)) for point in points]
        known = [size for _, size in sizes if size is not None]
        if not known:
            continue
        steps: list[tuple[float, float | None]] = []
        for at, size in sizes:
            y = None if size is None or size > scale.top else scale.y(size)
            if not steps or steps[-1][1] != y:
                steps.append((_share(at, first, last), y))
        steps.append((100.0, steps[-1][1]))
        yield Line(kind, tuple(steps), known[-1])


def _lane(name: str, entries: Sequence[dict[str, Any]], first: int, last: int) -> Lane:
    inside = [e for e in entries if e["at"] is not None and _touches(e, first, last)]
    drawn = inside[-MOST_MARKS:]
    return Lane(
        name=name,
        title=TITLES.get(name, name),
        bands=tuple(_band(entry, first, last) for entry in drawn if "to" in entry),
        marks=tuple(_mark(entry, first, last) for entry in drawn if "to" not in entry),
        more=len(inside) - len(drawn),
    )


def _touches(entry: dict[str, Any], first: int, last: int) -> bool:
    if "to" in entry:
        return bool(entry["at"] <= last and (entry["to"] is None or entry["to"] >= first))
    return bool(first <= entry["at"] <= last)


def _mark(entry: dict[str, Any], first: int, last: int) -> Mark:
    x = _share(entry["at"], first, last)
    return Mark(x, entry["at"], entry["seq"], entry["tone"], entry["says"])


def _band(entry: dict[str, Any], first: int, last: int, label: str = "") -> Band:
    at, to = entry["at"], entry["to"]
    x = max(0.0, _share(at, first, last))
    end = 100.0 if to is None else min(100.0, _share(to, first, last))
    width = round(max(LEAST_BAND, end - x), 3)
    return Band(x, width, at, entry["seq"], entry["tone"], entry["says"], label)


def _finding_rows(findings: list[FindingView], first: int, last: int) -> Iterator[Lane]:
    """A row for each code, the earliest above; suppressed ones are told by their cause."""
    by_code: dict[str, list[FindingView]] = {}
    for finding in sorted(findings, key=lambda f: f.since):
        if not finding.suppressed_by:
            by_code.setdefault(finding.code, []).append(finding)
    for code, found in list(by_code.items())[:MOST_ROWS]:
        entries = [finding_entry(finding) for finding in found]
        inside = [entry for entry in entries if _touches(entry, first, last)]
        bands = tuple(_band(e, first, last, words(code) if e is inside[0] else "") for e in inside)
        yield Lane(name="findings", title=words(code), bands=bands)


def finding_entry(finding: FindingView) -> dict[str, Any]:
    """A finding as the other lanes have their bands."""
    tone = states.severity(finding.severity).tone
    said = f"{words(finding.code)}: {finding.sentence}"
    return {"at": finding.since, "to": finding.closed_at, "seq": finding.since_seq,
            "tone": tone, "says": said}  # fmt: skip


def _ticks(first: int, last: int) -> Iterator[tuple[float, str]]:
    """Round moments, UTC; the day where it changes. None where no calendar has them."""
    span = (last - first) // 1000
    step = next((s for s in STEPS_S if span / s <= TICKS), span // TICKS)
    at, day = -(-first // (1000 * step)) * step, None
    while at * 1000 <= last:
        value = moment(at * 1000)
        if value is not None:
            yield _share(at * 1000, first, last), _tick(value, step, day)
            day = value.date()
        at += step


def _tick(value: datetime, step: int, day: date | None) -> str:
    text = f"{value:%H:%M:%S}" if step < 60 else f"{value:%H:%M}"
    if step > 86_400 * 300:
        return str(value.year)
    if step >= 86_400:
        return f"{value.day} {value:%b}"
    return f"{value.day} {value:%b} {text}" if day not in (None, value.date()) else text


def _name(
    points: Sequence[ReadingPoint], lanes: dict[str, list[dict[str, Any]]], first: int, last: int
) -> str:
    """The drawing in words, for those who do not see it."""
    loads = [point.load for point in points if point.load is not None]
    said = [plural(len(points), "reading")]
    if loads:
        said.append(f"load from {number(loads[0])} to {number(loads[-1])}, highest "
                    f"{number(max(loads))}")  # fmt: skip
    for name in LANES:
        inside = [
            e for e in lanes.get(name, []) if e["at"] is not None and _touches(e, first, last)
        ]
        if inside:
            said.append(f"{number(len(inside))} {TITLES.get(name, name)}")
    return "Time axis: " + "; ".join(said)
