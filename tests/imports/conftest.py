from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.bring import Desk


@pytest.fixture
def desk(db: None, tmp_path: Path) -> Desk:
    return Desk(tmp_path / "spool")
