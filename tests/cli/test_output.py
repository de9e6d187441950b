"""What the command does where nobody reads what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASE = Path(__file__).parents[1] / "incidents" / "C24-maka-latched.jsonl"
COMMAND = "import sys; from ctxhealth.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize("buffered", ["0", "1"])
def test_a_reader_that_has_seen_enough_ends_it_without_a_trace(buffered: str) -> None:
    """As in ``ctxhealth replay FILE | head -1``."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "replay", str(CASE)],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "" if buffered == "1" else "1"},
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
