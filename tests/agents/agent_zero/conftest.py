"""The stand-in for Agent Zero in this process, with the made plugin in it and a server half."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.agent_zero.stand_in import HOST, StandIn, made_plugin
from tests.client.server import running

_OWN = ("agent", "helpers", "plugins", "usr")


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``usr/plugins/ctxhealth`` as a user gets it, made once."""
    return made_plugin(tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def host(tmp_path: Path, plugin_folder: Path) -> Iterator[StandIn]:
    """The agent up and reporting to a server half; all of it gone from this process afterwards."""
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr" / "plugins").symlink_to(plugin_folder)
    kept = list(sys.path)
    sys.path[:0] = [str(HOST), str(tmp_path)]
    try:
        with running() as server:
            made = StandIn(tmp_path, server)
            yield made
            made.stop()
    finally:
        sys.path[:] = kept
        for name in [n for n in sys.modules if n.partition(".")[0] in _OWN]:
            del sys.modules[name]
        sys.modules.pop("_ctxhealth_agent_zero", None)
