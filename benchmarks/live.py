"""Open pages: from an agent's event to the browser, and what many browsers cost the server.

    python benchmarks/live.py [--json FILE] [--chats N] [--rate N] [--browsers N] [--seconds N]

A real server, agents over the public SDK, a real Chromium for the time to a visible change, and
plain sockets that read everything for the cost of many browsers.
"""

from __future__ import annotations

import argparse
import contextlib
import http.cookiejar
import json
import math
import random
import re
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from benchmarks.rows import Row, table
from tests.browser import agents
from tests.browser.server import Server
from tests.run import tools

RESULTS = Path(__file__).resolve().parent / "results" / "live.json"
VISIBLE_EVENTS = 100
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
WATCH = """
() => { window.seen = {};
  new MutationObserver(() => {
    const texts = document.createTreeWalker(document.getElementById("row-1"), NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) window.seen[texts.currentNode.data.trim()] ??= Date.now();
  }).observe(document.getElementById("rows"),
    {subtree: true, childList: true, characterData: true});
}
"""


def row(name: str, value: float, unit: str, bound: float | None = None, note: str = "") -> Row:
    """``bound`` is what the design asks for, None where it asks nothing."""
    target = "" if bound is None else f"<= {bound:g}"
    return Row(name=name, value=value, unit=unit, target=target, note=note)


class Load(NamedTuple):
    """``rate`` events a second over ``chats`` chats, for ``seconds``, with ``browsers`` open."""

    chats: int
    rate: int
    browsers: int
    seconds: float


def run(load: Load | None = None) -> list[Row]:
    """Everything, on one server after the other; takes about two minutes."""
    load = load or Load(2_000, 2_000, 20, 10.0)
    return [*visible_change(background=0), *visible_change(background=500), *fan_out(load)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--chats", type=int, default=2_000)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--browsers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    rows = run(Load(options.chats, options.rate, options.browsers, options.seconds))
    print(table(rows))
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(json.dumps([found.as_dict() for found in rows], indent=2) + "\n")
    return 0


@contextlib.contextmanager
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="ctxhealth-bench-") as folder:
        made = Server(Path(folder))
        made.answer = made.seed(links=2)
        made.start()
        try:
            yield made
        finally:
            made.stop()


# From the event to the eye.


def visible_change(background: int) -> list[Row]:
    """p50 and p99 of the time from the agent's call to the changed row in Chromium's DOM."""
    chromium = tools.chromium()
    if chromium is None:
        return [row("visible change (no Chromium here)", 0.0, "ms")]
    with server() as running:
        token = running.answer["tokens"]["agents"]
        with agents.reporter(running.socket, token) as agent:
            chat = agents.healthy_chat(agent, "watched")
            with traffic(running, background, chats=50):
                taken = _visible_times(running, chromium, chat)
    said = f"event to visible change, {background} events/s beside it"
    return [
        row(f"{said}: p50", statistics.median(taken), "ms", None, f"{len(taken)} events"),
        row(f"{said}: p99", percentile(taken, 99), "ms", 1_000.0),
    ]


def _visible_times(running: Server, chromium: Path, chat: Any) -> list[float]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(chromium), args=FLAGS)
        page = browser.new_page(base_url=running.origin)
        page.goto(running.answer["logins"]["ada"].pop())
        page.locator("main form button").first.click()
        page.wait_for_selector("#live.on")
        page.evaluate(WATCH)
        sent: dict[str, float] = {}
        chance = random.Random(1)
        for n in range(VISIBLE_EVENTS):
            load = 60_000 + n * 137
            sent[f"{load:,}"] = time.time() * 1_000
            reply(chat, load)
            page.wait_for_timeout(300 + 300 * chance.random())
        page.wait_for_timeout(2_000)
        seen: dict[str, float] = page.evaluate("() => window.seen")
        browser.close()
    return times_until_shown(sent, seen)


def times_until_shown(sent: dict[str, float], seen: dict[str, float]) -> list[float]:
    """Until this value or a newer one stands on the page: pages skip what is out of date."""
    shown = [seen.get(text, math.inf) for text in sent]
    for place in reversed(range(len(shown) - 1)):
        shown[place] = min(shown[place], shown[place + 1])
    assert shown[-1] < math.inf, "the last value never came"
    return [at - began for at, began in zip(shown, sent.values(), strict=True)]


def reply(chat: Any, load: int) -> None:
    """One request and its answer: two events."""
    request = chat.request_sent(local=load)
    usage = {"dialect": "openai", "input": load, "output": 100}
    chat.model_replied(request, usage=usage, content={"text_chars": 100}, finish="stop")


# Many browsers.


def fan_out(load: Load) -> list[Row]:
    """The server's CPU with no browser and with many, under the same stream of events."""
    with server() as running:
        cookie = sign_in(running)
        process = psutil.Process(running.pid)
        with traffic(running, load.rate, load.chats) as counted:
            counted.wait_warm()
            alone = cpu_share(process, load.seconds, counted)
            readers = [Reader(running, cookie) for _ in range(load.browsers)]
            time.sleep(2)
            watched = cpu_share(process, load.seconds, counted, readers)
            for reader in readers:
                reader.close()
        memory = process.memory_info().rss / 2**20
    frames = [reader.frames for reader in readers]
    per_second = [count / watched.took for count in frames]
    extra = (watched.cpu - alone.cpu) / load.browsers
    title = f"{load.chats:,} chats, {load.rate:,} events/s asked"
    return [
        row(f"{title}: events/s stored, no browser", alone.events, "1/s"),
        row(f"{title}: CPU, no browser", 100 * alone.cpu, "%"),
        row(f"{title}: events/s stored, {load.browsers} browsers", watched.events, "1/s"),
        row(f"{title}: CPU, {load.browsers} browsers", 100 * watched.cpu, "%"),
        row(f"{title}: CPU per browser", 100 * extra, "%", 2.5),
        row(f"{title}: updates a second per browser", statistics.mean(per_second), "1/s", 13.0,
            "an update is up to three frames"),
        row(f"{title}: kB a second per browser",
            statistics.mean(reader.bytes for reader in readers) / watched.took / 1_000, "kB/s"),
        row(f"{title}: browsers cut", sum(reader.cut for reader in readers), "", 0.0),
        row(f"{title}: server memory", memory, "MiB"),
    ]  # fmt: skip


class Share(NamedTuple):
    """``cpu`` is seconds of CPU a second, ``events`` those stored a second, over ``took``."""

    cpu: float
    events: float
    took: float


def cpu_share(
    process: psutil.Process, seconds: float, counted: Traffic, readers: list[Reader] | None = None
) -> Share:
    for reader in readers or ():
        reader.frames = reader.bytes = 0
    before, began, stored = process.cpu_times(), time.monotonic(), counted.acked()
    time.sleep(seconds)
    took = time.monotonic() - began
    after = process.cpu_times()
    used = after.user + after.system - before.user - before.system
    return Share(used / took, (counted.acked() - stored) / took, took)


class Reader(threading.Thread):
    """A browser's socket without the browser: it takes every frame and counts."""

    def __init__(self, running: Server, cookie: str) -> None:
        super().__init__(daemon=True)
        self.frames = self.bytes = 0
        self.cut = False
        self._closing = False
        headers = {"Cookie": cookie}
        self.socket: ClientConnection = connect(
            f"{running.socket}/ws/ui/v1/?view=board",
            origin=running.origin,  # type: ignore[arg-type]  a NewType of str
            additional_headers=headers,
            max_size=None,
            compression=None,
        )
        self.start()

    def run(self) -> None:
        try:
            for frame in self.socket:
                self.frames += 1
                self.bytes += len(frame)
        except ConnectionClosed:
            pass
        self.cut = not self._closing

    def close(self) -> None:
        self._closing = True
        self.socket.close()


class Traffic:
    """One agent that reports model replies over many chats at a steady rate."""

    def __init__(self, agent: Any, rate: int, chats: int) -> None:
        self._agent = agent
        self._rate = rate
        self._chats = [
            agent.chat(f"bench-{n}", title=f"Chat {n}", model="bench-model", window=200_000)
            for n in range(chats)
        ]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)

    def acked(self) -> int:
        return int(self._agent.status()["acked"])

    def wait_warm(self) -> None:
        """Until every chat was reported once."""
        self._agent.wait_below(2_000, 60)
        time.sleep(2)

    def _report(self) -> None:
        chance = random.Random(2)
        began, sent = time.monotonic(), 0
        while not self._stopping.is_set():
            due = int((time.monotonic() - began) * self._rate)
            while sent < due:
                chat = self._chats[sent // 2 % len(self._chats)]
                reply(chat, 20_000 + chance.randrange(100_000))
                sent += 2
            time.sleep(0.002)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopping.set()
        self._thread.join()


@contextlib.contextmanager
def traffic(running: Server, rate: int, chats: int) -> Iterator[Traffic]:
    token = running.answer["tokens"]["agents"]
    with agents.reporter(running.socket, token, "bench") as agent:
        if not rate:
            yield Traffic(agent, 0, 0)
            return
        with Traffic(agent, rate, chats) as made:
            yield made


def sign_in(running: Server) -> str:
    """The Cookie header of a signed-in person."""
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    link = running.origin + running.answer["logins"]["ada"].pop()
    page = opener.open(link).read().decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found is not None
    body = urllib.parse.urlencode({"csrfmiddlewaretoken": found.group(1)}).encode()
    request = urllib.request.Request(link, body, {"Origin": running.origin, "Referer": link})
    opener.open(request).read()
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))]


if __name__ == "__main__":
    sys.exit(main())
