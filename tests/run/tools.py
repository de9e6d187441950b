"""What some tests need beside Python: found, installed where that is possible, or named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_APT_SECONDS = 900


def chromium() -> Path | None:
    """The system's Chromium or Chrome; CTXHEALTH_CHROMIUM names another one."""
    named = os.environ.get("CTXHEALTH_CHROMIUM")
    if named:
        return Path(named) if os.access(named, os.X_OK) else None
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    on_path = [Path(found) for name in names if (found := shutil.which(name))]
    on_mac = [
        Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
        Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    ]
    return next(iter([*on_path, *(path for path in on_mac if path.exists())]), None)


def postgresql() -> Path | None:
    """The folder with `initdb` and `postgres`, the newest where there are several."""
    folders = [
        *Path("/usr/lib/postgresql").glob("*/bin"),
        *Path("/opt/homebrew/opt").glob("postgresql*/bin"),
        *Path("/usr/local/opt").glob("postgresql*/bin"),
    ]
    folders.sort(key=lambda folder: [int(part) for part in re.findall(r"\d+", str(folder))])
    if on_path := shutil.which("initdb"):
        folders.insert(0, Path(on_path).resolve().parent)
    whole = [folder for folder in folders if _has_all(folder, "initdb", "postgres")]
    return whole[-1] if whole else None


def _has_all(folder: Path, *names: str) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in names)


def samples() -> Path | None:
    """Real session files: CTXHEALTH_SAMPLES, or `../shared/samples` beside the project."""
    named = os.environ.get("CTXHEALTH_SAMPLES")
    folder = Path(named) if named else ROOT.parent / "shared" / "samples"
    return folder if folder.is_dir() else None


@dataclass(frozen=True)
class Tool:
    """One need: how it is found, its package for apt (None: cannot be installed), who needs it."""

    name: str
    find: Callable[[], Path | None]
    package: str | None
    needed_by: str


TOOLS = (
    Tool("chromium", chromium, "chromium", "browser tests"),
    Tool("postgresql", postgresql, "postgresql", "the second run of the database tests"),
    Tool("samples", samples, None, "tests that read real session files"),
)


def setup() -> None:
    """Install what is missing where this user may, then print what is there and what is not."""
    missing = [tool for tool in TOOLS if tool.package and tool.find() is None]
    if missing and _may_install():
        _apt_install([str(tool.package) for tool in missing])
    print("What the tests need", flush=True)
    for tool in TOOLS:
        found = tool.find()
        where = str(found) if found else f"not here: {tool.needed_by} are skipped and counted"
        print(f"  {tool.name:<12}{where}", flush=True)


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _apt_install(packages: list[str]) -> None:
    """Failures are told and not fatal: what stays missing is skipped and counted."""
    print(f"Installing {', '.join(packages)} with apt-get.", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "--no-install-recommends"]
    # One by one: a name that this system does not know must not keep the others out.
    for command in (["apt-get", "update"], *([*install, package] for package in packages)):
        if not _follow(command, environment):
            print(f"  {' '.join(command)} failed.", file=sys.stderr, flush=True)


def _follow(command: list[str], environment: dict[str, str]) -> bool:
    """Run `command`, showing only the lines that tell of progress."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(("Get:", "Unpacking", "Setting up", "E:")):
            print(f"  {line.rstrip()}", flush=True)
    return process.wait(timeout=_APT_SECONDS) == 0
