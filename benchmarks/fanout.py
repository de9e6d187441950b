"""Twenty open boards over a busy fleet: what they cost the server, and whether any is out of date.

    python benchmarks/fanout.py [--json FILE] [--stored N] [--chats N] [--rate N] [--browsers N]

A real server over ``stored`` chats, an agent that reports at ``rate`` events a second over
``chats`` of them, and plain websockets that take every frame as browsers do. The server's CPU is
compared without and with them under the same stream; when it ends, what each of them was sent
last must be what a fresh page shows.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402

from benchmarks.live import Reader, Share, Traffic, cpu_share, row, sign_in, traffic  # noqa: E402
from benchmarks.pages import fill  # noqa: E402
from benchmarks.rows import Row, table  # noqa: E402
from tests.browser.server import Server  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "fanout.json"
CALM_SECONDS = 5.0  # as often as a board's script follows an order of which nothing is critical
CORE = 15.0  # per cent of one core that the design gives to twenty browsers
SETTLE_SECONDS = 30
_ROW = re.compile(r'<tr id="(row-\d+)".*?</tr>', re.S)


class Plan(NamedTuple):
    stored: int = 10_000
    chats: int = 2_000
    rate: int = 2_000
    browsers: int = 20
    seconds: float = 15.0


class Board(Reader):
    """A board's socket that remembers each row and the order as it was sent them last.

    It says which rows stand on its page, as a board's script does.
    """

    def run(self) -> None:
        self.rows: dict[str, str] = {}
        self.order: list[int] = []
        self.followed = 0.0
        try:
            for frame in self.socket:
                self.frames += 1
                self.bytes += len(frame)
                self._take(str(frame))
        except ConnectionClosed:
            pass
        self.cut = not self._closing

    def _take(self, frame: str) -> None:
        if not frame.startswith("{"):
            self.rows.update((found[1], plain(found[0])) for found in _ROW.finditer(frame))
        elif '"order"' in frame:
            self.order = json.loads(frame)["ids"]
            self._follow()

    def _follow(self) -> None:
        if time.monotonic() >= self.followed + CALM_SECONDS:
            self.followed = time.monotonic()
            self.socket.send(json.dumps({"show": self.order}))

    def wrong(self, fresh: dict[str, str]) -> int:
        """How many rows of a fresh page this one shows otherwise, or not at all."""
        return sum(self.rows.get(name) != html for name, html in fresh.items())


def plain(html: str) -> str:
    """A row without what tells a pushed one from a first render: its mark, and ages."""
    html = re.sub(r' hx-swap-oob="morph"', "", html)
    return re.sub(
        r"<time([^>]*)>[^<]*</time>", lambda m: f"<time{m[1].replace(' late', '')}>", html
    )


def run(plan: Plan | None = None) -> list[Row]:
    plan = plan or Plan()
    with tempfile.TemporaryDirectory(prefix="ctxhealth-bench-") as folder:
        server = Server(Path(folder))
        server.answer = server.seed(links=2)
        fill(server, plan.stored, 40)
        server.start()
        try:
            return _measured(server, plan)
        finally:
            server.stop()


def _measured(server: Server, plan: Plan) -> list[Row]:
    cookie = sign_in(server)
    process = psutil.Process(server.pid)
    boards: list[Board] = []
    with traffic(server, plan.rate, plan.chats) as counted:
        counted.wait_warm()
        alone = cpu_share(process, plan.seconds, counted)
        boards += [Board(server, cookie) for _ in range(plan.browsers)]
        time.sleep(3)
        watched = cpu_share(process, plan.seconds, counted, list(boards))
        frames = sum(board.frames for board in boards) / plan.browsers / watched.took
    stale = _out_of_date(server, cookie, boards, counted)
    for board in boards:
        board.close()
    return _rows(plan, alone, watched, frames, stale, sum(board.cut for board in boards))


def _rows(
    plan: Plan, alone: Share, watched: Share, frames: float, stale: int, cut: int
) -> list[Row]:
    title = f"{plan.stored:,} chats stored, {plan.chats:,} live, {plan.rate:,} events/s asked"
    cost = 100 * (watched.cpu - alone.cpu)
    return [
        row(f"{title}: events/s stored, no browser", alone.events, "1/s"),
        row(f"{title}: CPU, no browser", 100 * alone.cpu, "% of a core"),
        row(f"{title}: events/s stored, {plan.browsers} browsers", watched.events, "1/s"),
        row(f"{title}: CPU, {plan.browsers} browsers", 100 * watched.cpu, "% of a core"),
        row(f"{title}: what {plan.browsers} browsers cost", cost, "% of a core", CORE),
        row(f"{title}: frames a second per browser", frames, "1/s"),
        row(f"{title}: rows out of date when it is over", stale, "", 0.0),
        row(f"{title}: browsers cut", cut, "", 0.0),
    ]


def _out_of_date(server: Server, cookie: str, boards: list[Board], counted: Traffic) -> int:
    """Rows and orders that differ from a fresh page's, once everything has been said."""
    deadline = time.monotonic() + SETTLE_SECONDS
    wrong = len(boards)
    while wrong and time.monotonic() < deadline:
        time.sleep(1)
        fresh = _fresh(server, cookie)
        order = [int(name.removeprefix("row-")) for name in fresh]
        wrong = sum(board.wrong(fresh) + (board.order != order) for board in boards)
    return wrong


def _fresh(server: Server, cookie: str) -> dict[str, str]:
    request = urllib.request.Request(server.origin + "/", headers={"Cookie": cookie})
    with urllib.request.urlopen(request, timeout=60) as answer:
        page = answer.read().decode()
    return {found[1]: plain(found[0]) for found in _ROW.finditer(page)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULTS)
    for name, value in Plan()._asdict().items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    options = vars(parser.parse_args())
    target = options.pop("json")
    rows = run(Plan(**options))
    print(table(rows))
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps([found.as_dict() for found in rows], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
