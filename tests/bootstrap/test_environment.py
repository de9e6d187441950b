"""The environment: made, resumed, repaired and shared, with a real pip and real wheels."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.bootstrap.conftest import base_python
from tests.bootstrap.wheels import from_folder, make_wheel
from tests.quality.sources import ROOT

ENSURE = """
import sys
from pathlib import Path
from ctxhealth.bootstrap.environment import Environment
from ctxhealth.bootstrap.errors import CannotStartError
try:
    Environment(Path(sys.argv[1])).ensure(dev=len(sys.argv) > 2)
except CannotStartError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
"""
DEADLINE_SECONDS = 60.0


def command(root: Path, *flags: str) -> list[str]:
    return [base_python(), "-c", ENSURE, str(root), *flags]


def ensure(
    root: Path, environment: Mapping[str, str], *flags: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(root, *flags),
        cwd=ROOT,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )


def value_of(root: Path, name: str) -> str:
    """What the environment's own Python finds in package `name`."""
    result = subprocess.run(
        [root / ".venv/bin/python", "-c", f"import {name}; print({name}.value)"],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stdout.strip() or result.stderr


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip alone, made once and copied: making one takes seconds."""
    folder = tmp_path_factory.mktemp("bare") / ".venv"
    subprocess.run([base_python(), "-m", "venv", folder], check=True)
    return folder


@pytest.fixture
def root(fresh: Path, bare: Path) -> Path:
    """The project with an environment in which nothing is installed yet."""
    shutil.copytree(bare, fresh / ".venv", symlinks=True)
    return fresh


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A project that needs two packages, and a third for tests; it has no environment."""
    folder = tmp_path / "project"
    folder.mkdir()
    wheels = tmp_path / "wheels"
    pins = make_wheel(wheels, "alpha") + make_wheel(wheels, "beta", files=3)
    (folder / "requirements.txt").write_text(pins, encoding="utf-8")
    pin = make_wheel(wheels, "gamma")
    (folder / "requirements-dev.txt").write_text(pin, encoding="utf-8")
    return folder


@pytest.fixture
def environment(fresh: Path) -> dict[str, str]:
    return from_folder(fresh.parent / "wheels")


def test_a_first_start_shows_each_package_and_a_second_installs_nothing(
    fresh: Path, environment: dict[str, str]
) -> None:
    first = ensure(fresh, environment)
    assert first.returncode == 0, first.stderr
    assert "fetching 1/2 alpha 1.0" in first.stdout
    assert "installing 2/2 " in first.stdout
    assert value_of(fresh, "beta") == "1"
    second = ensure(fresh, environment)
    assert (second.returncode, second.stdout) == (0, "")


def test_tests_install_their_own_packages_once(root: Path, environment: dict[str, str]) -> None:
    assert ensure(root, environment).returncode == 0
    assert "gamma" in ensure(root, environment, "dev").stdout
    assert value_of(root, "gamma") == "1"
    assert ensure(root, environment, "dev").stdout == ""
    assert ensure(root, environment).stdout == ""


def test_changed_requirements_are_installed_by_the_next_start(
    root: Path, environment: dict[str, str]
) -> None:
    assert ensure(root, environment).returncode == 0
    pin = make_wheel(root.parent / "wheels", "delta")
    with (root / "requirements.txt").open("a", encoding="utf-8") as file:
        file.write(pin)
    assert ensure(root, environment).returncode == 0
    assert value_of(root, "delta") == "1"


def test_an_install_killed_half_way_is_taken_up_by_the_next_start(
    root: Path, environment: dict[str, str]
) -> None:
    pin = make_wheel(root.parent / "wheels", "large", files=4000)
    with (root / "requirements.txt").open("a", encoding="utf-8") as file:
        file.write(pin)
    process = subprocess.Popen(
        command(root), cwd=ROOT, env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not list(root.glob(".venv/lib/python3*/site-packages/large/part1*.py")):
        assert process.poll() is None and time.monotonic() < deadline, "it never began to install"
    kill_group(process)
    assert not (root / ".venv/ctxhealth-installed.json").exists()

    again = ensure(root, environment)
    assert again.returncode == 0, again.stderr
    assert value_of(root, "large") == "1"
    assert len(list(root.glob(".venv/lib/python3*/site-packages/large/part*.py"))) == 3999


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """The start and the pip it began, as a lost power would."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_package_without_its_record_is_installed_again(
    root: Path, environment: dict[str, str]
) -> None:
    assert ensure(root, environment).returncode == 0
    (site,) = root.glob(".venv/lib/python3*/site-packages")
    (site / "beta-1.0.dist-info/RECORD").unlink()
    (site / "beta/__init__.py").unlink()
    (root / ".venv/ctxhealth-installed.json").unlink()
    assert ensure(root, environment).returncode == 0
    assert value_of(root, "beta") == "1"


def test_two_starts_at_once_make_one_environment(fresh: Path, environment: dict[str, str]) -> None:
    starts = [
        subprocess.Popen(
            command(fresh), cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate()[0] for process in starts]
    assert [process.returncode for process in starts] == [0, 0]
    assert sum("Making the environment" in output for output in outputs) == 1
    assert value_of(fresh, "alpha") == "1"


def test_a_broken_environment_is_made_anew(root: Path, environment: dict[str, str]) -> None:
    assert ensure(root, environment).returncode == 0
    python = root / ".venv/bin/python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    result = ensure(root, environment)
    assert result.returncode == 0, result.stderr
    assert "does not work any more; making it anew" in result.stdout
    assert value_of(root, "alpha") == "1"


def test_a_package_that_is_not_the_pinned_one_is_refused(
    root: Path, environment: dict[str, str]
) -> None:
    make_wheel(root.parent / "wheels", "alpha", files=2)
    result = ensure(root, environment)
    assert result.returncode == 2
    assert "not the one pinned in requirements.txt" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (root / ".venv/ctxhealth-installed.json").exists()


def test_a_full_disk_is_said_in_one_sentence(
    small_disk: Path, fresh: Path, environment: dict[str, str]
) -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        (small_disk / name).write_bytes((fresh / name).read_bytes())
    result = ensure(small_disk, environment)
    assert result.returncode == 2
    assert "is full: make room and start again." in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_checkout_without_its_requirements_says_so(tmp_path: Path) -> None:
    result = ensure(tmp_path, from_folder(tmp_path))
    assert result.returncode == 2
    assert "requirements.txt is missing" in result.stderr
