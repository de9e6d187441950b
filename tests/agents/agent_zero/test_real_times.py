"""How long a turn of a real Agent Zero takes, with and without the plugin, over 50 turns each."""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import pytest

from tests.agents.agent_zero.real import TREE, Process, Tree, script_healthy
from tests.agents.provider import Provider
from tests.agents.trouble import SERVERS

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(TREE not in os.environ, reason=f"needs an Agent Zero tree: set {TREE}"),
    pytest.mark.timeout(1_800),
]
TURNS = 50
SHARE = 0.02


def test_a_turn_takes_as_long_as_without_the_plugin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hooks' own time is compared with the turn's: two runs of an agent differ by more than
    2% of themselves on a busy machine, so their ratio is told and not judged."""
    told = []
    with Provider() as provider:
        script_healthy(provider, 20)
        tree = Tree(tmp_path, provider, window=20_000, share=0.28)
        with Process(tree, tmp_path / "without.log") as agent:
            without = [seconds for seconds, _ in agent.do("times", "bare", "hello", TURNS)]
        for trouble, serve in SERVERS.items():
            with serve() as url:
                tree.plug(url, "ctxh_x_0123456789abcdef")
                with Process(tree, tmp_path / f"{trouble}.log") as agent:
                    rows = agent.do("times", trouble, "hello", TURNS)
            turn = statistics.median(seconds for seconds, _ in rows)
            hooks = statistics.median(spent for _, spent in rows)
            ratio = turn / statistics.median(without)
            told.append(f"{trouble}: turn {turn * 1000:.0f} ms, hooks {hooks * 1000:.1f} ms "
                        f"({hooks / turn:.2%}), {ratio:.2f} x without")  # fmt: skip
            assert 0 < hooks / turn <= SHARE, told
    with capsys.disabled():
        print("", *told, sep="\n")
