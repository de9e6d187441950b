"""A turn takes the same time with the plugin and a server that is no help as without the plugin.

Two QwenPaws side by side, one with the plugin, take turns at the same model: whatever else this
machine does falls on both alike. Run it alone for its figures; it says so where they mean nothing.
"""

from __future__ import annotations

import time
from math import sqrt
from pathlib import Path
from statistics import median

import pytest

from tests.agents.provider import Provider, says
from tests.agents.qwenpaw.paw import MODEL, Paw, environment
from tests.agents.qwenpaw.unhelpful import MANNERS, unhelpful

pytestmark = [pytest.mark.agents, pytest.mark.timeout(2400)]
_TURNS = 50
_WARM = 5
_BOUND = 0.02


def _took(paw: Paw, session: str) -> float:
    begun = time.perf_counter()
    paw.say(session, "What is the next step?")
    return time.perf_counter() - begun


def _pairs(with_it: Paw, without: Paw, name: str) -> tuple[list[float], list[float]]:
    """Alternating, and each pair the other way round than the one before."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(_WARM + _TURNS):
        session = f"{name}{number // 10}"
        order = ((with_it, ours), (without, theirs))
        for paw, times in order if number % 2 else reversed(order):
            took = _took(paw, session)
            if number >= _WARM:
                times.append(took)
    return ours, theirs


def _share(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    """How much longer a turn takes, and the standard error of saying so; shares of a turn.

    By the differences of neighbours, so that what changes on the machine meanwhile drops out.
    """
    apart = [a - b for a, b in zip(ours, theirs, strict=True)]
    middle = median(apart)
    spread = 1.4826 * median(abs(one - middle) for one in apart)
    return middle / median(theirs), 1.2533 * spread / sqrt(len(apart)) / median(theirs)


def test_the_median_of_50_turns_is_within_2_percent_whatever_the_server_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = environment(tmp_path)
    told, found = [], {}
    with Provider() as provider, unhelpful() as server:
        provider.script(MODEL, says("The next step is to wait and see. " * 20))
        paws = [
            Paw(python, tmp_path / "with", url=server.url, token="ctxh_x_y", agent="timed"),
            Paw(python, tmp_path / "without", plugin=False),
        ]
        for paw in paws:
            paw.prepare(provider.url)
        with paws[0] as with_it, paws[1] as without:
            for manner in MANNERS:
                server.become(manner)
                ours, theirs = _pairs(with_it, without, manner)
                share, error = found[manner] = _share(ours, theirs)
                told.append(
                    f"{manner}: {median(ours) * 1000:.1f} ms with, {median(theirs) * 1000:.1f} ms"
                    f" without, {share:+.1%} by neighbours, standard error {error:.1%}"
                )
    with capsys.disabled():
        print("\n" + "\n".join(told))
    assert server.met["slow"] and server.met["refusing"] and server.met["rubbish"]
    slower = {manner: (share, error) for manner, (share, error) in found.items() if share > _BOUND}
    if slower and all(share - 2 * error <= _BOUND for share, error in slower.values()):
        pytest.skip(f"this machine is too busy to tell {_BOUND:.0%}: {told}")
    assert not slower, told
