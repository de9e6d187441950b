"""A tab that stays open: nothing grows, nothing complains, and outages pass by themselves.

    python benchmarks/endurance.py [--minutes N] [--rate N] [--chats N] [--json FILE]

A real server, agents over the public SDK, and a real Chromium with the board in one tab and a
busy chat in another, behind a wire that can fall silent. DOM nodes and JS heap are read after a
garbage collection; their slope is judged after the caps of the pages are reached. On the way the
server is killed and started again, and once the wire goes silent as when a laptop sleeps.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.live import FLAGS, row, server  # noqa: E402
from benchmarks.rows import Row, table  # noqa: E402
from tests.browser import agents  # noqa: E402
from tests.browser.proxy import Wire  # noqa: E402
from tests.browser.server import Server  # noqa: E402
from tests.run import tools  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "endurance.json"
WARM_SHARE = 0.25  # of the run, before the slope is judged
SHARE_OF_NOISE = 0.02  # growth below this share of the mean is noise whatever its error
BUSY = "busy"
CALM = 110_000  # tokens at which a chat compacts
PAGES = (("board", "/"), ("chat", "/chats/1/"))
READ = {"DOM nodes": "Nodes", "JS heap": "JSHeapUsedSize", "listeners": "JSEventListeners"}
LISTEN = """
window.ctxReports = [];
document.addEventListener("securitypolicyviolation", (e) => ctxReports.push(e.violatedDirective));
window.ctxShifts = [];
new PerformanceObserver((list) => { for (const e of list.getEntries())
  if (!e.hadRecentInput) ctxShifts.push([e.startTime, e.value]); })
  .observe({type: "layout-shift", buffered: true});
"""
# The worst window of a page's shifts, as the web vital has it: at most 5 s, gaps below 1 s.
WORST_SHIFT = """
() => { let worst = 0, sum = 0, began = 0, last = -Infinity;
  for (const [at, value] of ctxShifts) {
    if (at - last > 1000 || at - began > 5000) { began = at; sum = 0; }
    sum += value; last = at; worst = Math.max(worst, sum);
  }
  return worst; }
"""


Outage = Callable[[Server, Wire, "list[Tab]"], list[Row]]


class Plan(NamedTuple):
    """``seconds`` of traffic at ``rate`` events a second over ``chats``; a sample each ``every``.

    ``outages``: whether the server is killed and the wire falls silent on the way. ``lived``:
    turns of the watched chat before.
    """

    seconds: float
    rate: int = 50
    chats: int = 60
    every: float = 10.0
    outages: bool = True
    lived: int = 700


def run() -> list[Row]:
    """Two minutes of it."""
    return endure(Plan(120.0))[0]


def endure(plan: Plan) -> tuple[list[Row], list[Tab]]:
    """What came of it, and the tabs with their samples."""
    chromium = tools.chromium()
    if chromium is None:
        return [row("endurance (no Chromium here)", 0.0, "")], []
    with server() as running, contextlib.closing(Wire(running.port)) as wire:
        token = running.answer["tokens"]["agents"]
        with (
            agents.reporter(running.socket, token, "endurance") as agent,
            Work(agent, plan) as work,
        ):
            return _watch(running, wire, chromium, work, plan)


def _watch(
    running: Server, wire: Wire, chromium: Path, work: Work, plan: Plan
) -> tuple[list[Row], list[Tab]]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=str(chromium), args=[*FLAGS, "--js-flags=--expose-gc"]
        )
        signed_in = _signed_in(browser, running, wire)
        tabs = [Tab(browser, wire, signed_in, name, path) for name, path in PAGES]
        outages = _live_through(running, wire, tabs, plan)
        lasted = f"{plan.seconds / 60:.1f} minutes"
        rows = [row("endurance: events reported", work.sent, "", None, lasted)]
        rows += [found for tab in tabs for found in tab.rows()]
        browser.close()
    return [*rows, *outages], tabs


def _signed_in(browser: Any, running: Server, wire: Wire) -> Any:
    page = browser.new_page(base_url=wire.origin)
    page.goto(running.answer["logins"]["ada"].pop())
    page.locator("main form button").first.click()
    page.wait_for_url("**/")
    state = page.context.storage_state()
    page.context.close()
    return state


def _live_through(running: Server, wire: Wire, tabs: list[Tab], plan: Plan) -> list[Row]:
    began = time.monotonic()
    troubles: list[tuple[float, Outage]] = [(0.45, _killed), (0.7, _silent)] if plan.outages else []
    rows: list[Row] = []
    for tab in tabs:
        tab.settled()
    while (passed := time.monotonic() - began) < plan.seconds:
        if troubles and passed >= troubles[0][0] * plan.seconds:
            rows += _through(troubles.pop(0)[1], running, wire, tabs)
            for tab in tabs:
                tab.outages.append(time.monotonic() - began)
        for tab in tabs:
            tab.sample(time.monotonic() - began)
        tabs[0].page.wait_for_timeout(plan.every * 1_000)
    for tab in tabs:
        tab.sample(time.monotonic() - began)
    return rows


def _through(outage: Outage, running: Server, wire: Wire, tabs: list[Tab]) -> list[Row]:
    for tab in tabs:
        tab.away = True
    rows = outage(running, wire, tabs)
    for tab in tabs:
        tab.page.wait_for_timeout(500)
        tab.away = False
    return rows


def _killed(running: Server, wire: Wire, tabs: list[Tab]) -> list[Row]:
    running.kill()
    stale = max(tab.until("stale") for tab in tabs)
    running.start()
    back = max(tab.until("on") for tab in tabs)
    return [
        row("server killed: until the badge says stale", stale, "s", 45.0),
        row("server started: until every page is live again", back, "s", 60.0),
    ]


def _silent(running: Server, wire: Wire, tabs: list[Tab]) -> list[Row]:
    wire.fall_silent()
    stale = max(tab.until("stale") for tab in tabs)
    wire.heal()
    back = max(tab.until("on") for tab in tabs)
    return [
        row("socket dead in silence: until the badge says stale", stale, "s", 45.0),
        row("wire whole again: until every page is live again", back, "s", 60.0),
    ]


@dataclass
class Tab:
    """One page in a process of its own, with what was read of it and what it complained of."""

    browser: Any
    wire: Wire
    signed_in: Any
    name: str
    path: str
    away: bool = False
    complaints: list[str] = field(default_factory=list)
    samples: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    outages: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        context = self.browser.new_context(base_url=self.wire.origin, storage_state=self.signed_in)
        self.page = context.new_page()
        self.page.add_init_script(LISTEN)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("console", self._hear)
        self.page.goto(self.path)
        self.tools = context.new_cdp_session(self.page)
        self.tools.send("Performance.enable")
        self.tools.send("HeapProfiler.enable")

    def _hear(self, message: Any) -> None:
        """What a browser says of a server that is away is no fault of the page."""
        if message.type == "error" and not self.away:
            self.complaints.append(message.text)

    def until(self, kind: str) -> float:
        """Seconds until the badge is of that kind."""
        began = time.monotonic()
        self.page.wait_for_selector(f"#live.{kind}", timeout=90_000)
        return time.monotonic() - began

    def sample(self, at: float) -> None:
        """Counts after a collection."""
        self.tools.send("HeapProfiler.collectGarbage")
        found = self.tools.send("Performance.getMetrics")["metrics"]
        values = {each["name"]: float(each["value"]) for each in found}
        self.samples.append((at, {said: values[name] for said, name in READ.items()}))

    def settled(self) -> None:
        """What was loaded has been drawn: from here on shifts are those of live updates."""
        self.until("on")
        self.page.wait_for_timeout(1_000)
        self.page.evaluate("() => { ctxShifts.length = 0; }")

    def worst_shift(self) -> float:
        return float(self.page.evaluate(WORST_SHIFT))

    def rows(self) -> list[Row]:
        reports = self.page.evaluate("() => ctxReports")
        return [
            *(self._growth(said) for said in READ),
            row(f"{self.name}: layout shift, worst window", self.worst_shift(), "", 0.02),
            row(f"{self.name}: policy reports and console errors",
                len(reports) + len(self.complaints), "", 0.0, "; ".join(self.complaints)[:300]),
        ]  # fmt: skip

    def _calm_times(self) -> list[tuple[float, float]]:
        """From one outage to the next."""
        ends = [0.0, *self.outages, math.inf]
        return list(itertools.pairwise(ends))

    def _growth(self, said: str) -> Row:
        warm = WARM_SHARE * self.samples[-1][0]
        points = [(at, values[said]) for at, values in self.samples if at >= warm]
        parts = [[p for p in points if low <= p[0] < high] for low, high in self._calm_times()]
        unit, scale = ("MB", 1e-6) if said == "JS heap" else ("", 1.0)
        parts = [[(at, value * scale) for at, value in part] for part in parts if len(part) > 1]
        grown, noise = growth(parts)
        mean = statistics.mean(value for _, value in points) * scale
        note = f"of {mean:,.1f} {unit}".rstrip() + f", {len(points)} samples"
        return row(f"{self.name}: {said}, growth over the run", grown, unit, round(noise, 2), note)


def growth(parts: list[list[tuple[float, float]]]) -> tuple[float, float]:
    """(growth over the time of the parts by least squares, what of it is noise).

    A part is the time between two outages: what a page loads anew after one is a step, no slope.
    Noise is two standard errors of the slope over that time, and at least a fiftieth of the mean.
    """
    centred: list[tuple[float, float]] = []
    for part in parts:
        when, much = (statistics.mean(column) for column in zip(*part, strict=True))
        centred += [(at - when, value - much) for at, value in part]
    spread = sum(at * at for at, _ in centred)
    slope = sum(at * value for at, value in centred) / spread
    squares = sum((value - slope * at) ** 2 for at, value in centred)
    error = math.sqrt(squares / max(1, len(centred) - len(parts) - 1) / spread)
    span = sum(part[-1][0] - part[0][0] for part in parts)
    level = statistics.mean(value for part in parts for _, value in part)
    return slope * span, max(2 * error * span, SHARE_OF_NOISE * level)


class Work:
    """Chats that live and stay well: turns, requests, now and then a compaction.

    A fifth of the events belongs to the first chat, the one that is watched; it has lived long
    enough before that every cap of its page is reached, and the others have compacted once, so
    that their rows show everything that a row can.
    """

    def __init__(self, agent: Any, plan: Plan) -> None:
        self.sent = 0
        self._rate = plan.rate
        self._chance = random.Random(5)
        self._loads: dict[Any, int] = {}
        self._stopping = threading.Event()
        facts = {"model": "endurance-model", "window": 200_000}
        self._busy = agent.chat(BUSY, title="The busy one", **facts)
        for _ in range(plan.lived):
            self._turn(self._busy)
        assert agent.flush(60)
        names = [f"calm-{n}" for n in range(plan.chats)]
        self._calm = [agent.chat(name, title=f"Chat {name}", **facts) for name in names]
        for chat in self._calm:
            self._turn(chat, compacts=True)
        assert agent.flush(60)
        self._thread = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Work:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _report(self) -> None:
        began, base = time.monotonic(), self.sent
        lives = self._lives()
        while not self._stopping.is_set():
            due = base + int((time.monotonic() - began) * self._rate)
            while self.sent < due:
                next(lives)
            time.sleep(0.01)

    def _lives(self) -> Iterator[None]:
        while True:
            quiet = self._chance.choice(self._calm)
            chat = self._busy if self._chance.random() < 0.2 else quiet
            self._turn(chat)
            yield

    def _turn(self, chat: Any, *, compacts: bool = False) -> None:
        """Five events, and two more where the chat compacts; its load grows from turn to turn."""
        load = self._loads[chat] = self._loads.get(chat, 20_000) + self._chance.randrange(9_000)
        turn = chat.turn_started()
        chat.message_added(role="user", tokens=200, text="and on it goes", turn=turn)
        request = chat.request_sent(local=load)
        usage = {"dialect": "openai", "input": load, "output": 300}
        chat.model_replied(request, usage=usage, content={"text_chars": 900}, finish="stop")
        chat.turn_ended(turn, "answered")
        self.sent += 5
        if compacts or load > CALM:
            self._loads[chat] = 20_000
            attempt = chat.compaction_started(before=load, scope="prompt")
            chat.compaction_finished(attempt, "done", before=load, after=20_000, scope="prompt")
            self.sent += 2


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--chats", type=int, default=60)
    options = parser.parse_args()
    rows, tabs = endure(Plan(options.minutes * 60, options.rate, options.chats))
    print(table(rows))
    options.json.parent.mkdir(exist_ok=True)
    found = {
        "rows": [each.as_dict() for each in rows],
        "samples": {t.name: t.samples for t in tabs},
    }
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
