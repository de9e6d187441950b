"""What Django itself can tell of the project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.quality.sources import ROOT

PRODUCTION = {
    "CTXHEALTH_URL": "https://ctxhealth.example.org",
    "SECRET_KEY": "an-example-of-a-long-secret-key-0123456789-abcdefghijklmnopq",
}


def manage(*args: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """One manage.py command in this test's interpreter."""
    clean = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *args],
        cwd=ROOT,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_models_have_their_migrations(tmp_path: Path) -> None:
    result = manage(
        "makemigrations",
        "--check",
        "--dry-run",
        environment={"CTXHEALTH_DATA_DIR": str(tmp_path / "data")},
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_deployment_passes_every_check(tmp_path: Path) -> None:
    environment = {**PRODUCTION, "CTXHEALTH_DATA_DIR": str(tmp_path / "data")}
    result = manage("check", "--deploy", "--fail-level", "WARNING", environment=environment)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_deployment_check_would_tell_of_a_server_without_https(tmp_path: Path) -> None:
    environment = {"CTXHEALTH_DATA_DIR": str(tmp_path / "data"), "CTXHEALTH_URL": ""}
    result = manage("check", "--deploy", "--fail-level", "WARNING", environment=environment)
    assert result.returncode != 0
    assert "security.W012" in result.stderr
