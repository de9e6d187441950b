"""One real server for the bridge's tests; a host and a state folder for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.maka.host import FakeHost
from tests.agents.maka.rig import Running
from tests.agents.server import House

Run = Callable[..., Running]


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with House(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture
def host() -> Iterator[FakeHost]:
    with FakeHost() as host:
        yield host


@pytest.fixture
def bridge(house: House, tmp_path: Path) -> Run:
    """``bridge(host, *options)``: a bridge between that host and the server."""

    def make(host: FakeHost, *more: str) -> Running:
        return Running(tmp_path / "state", host.url, house.url, house.agent_token, *more)

    return make
