from __future__ import annotations

import pytest

from tests.live.world import Agent


@pytest.fixture
def robot(transactional_db: None) -> Agent:
    return Agent()
