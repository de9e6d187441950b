"""The project's virtual environment: made, filled, stamped, and made anew where it is broken."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from ctxhealth.bootstrap.errors import CannotStartError, sentence_for_oserror
from ctxhealth.bootstrap.install import Installer
from ctxhealth.bootstrap.locks import folder_lock

_STAMP = "ctxhealth-installed.json"


class Environment:
    """`.venv` under `root`, with a stamp that says which requirements are in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / _STAMP

    def is_current(self) -> bool:
        """Whether this process runs inside it."""
        return Path(sys.prefix).resolve() == self.folder.resolve()

    def ensure(self, *, dev: bool) -> None:
        """Bring it to the requirements; returns at once where the stamp says it is there.

        Raises CannotStartError. An interrupted run is taken up by the next: the stamp comes last.
        """
        wanted = self._wanted(dev=dev)
        if self._has(wanted):
            return
        try:
            with folder_lock(self.root, self._say_waiting):
                if not self._has(wanted):
                    self._build(wanted)
        except OSError as error:
            raise CannotStartError(sentence_for_oserror(error, self.root)) from error

    def _wanted(self, *, dev: bool) -> dict[str, str]:
        names = ["requirements.txt", *(["requirements-dev.txt"] if dev else [])]
        return {name: self._digest(self.root / name) for name in names}

    @staticmethod
    def _digest(path: Path) -> str:
        try:
            return hashlib.sha256(path.read_bytes()).hexdigest()
        except FileNotFoundError as error:
            raise CannotStartError(f"{path} is missing: the checkout is not whole.") from error

    def _stamped(self) -> dict[str, str]:
        try:
            content = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _has(self, wanted: dict[str, str]) -> bool:
        """Stamped for what is wanted, and by the very interpreter that it starts today."""
        stamped = self._stamped()
        interpreter = self._interpreter()
        if interpreter is None or stamped.get("python") != interpreter:
            return False
        return all(stamped.get(name) == digest for name, digest in wanted.items())

    def _interpreter(self) -> str | None:
        """The file its Python is a link to, with size and time: a system upgrade changes them."""
        try:
            target = self.python.resolve(strict=True)
            facts = target.stat()
        except OSError:
            return None
        return f"{target} {facts.st_size} {facts.st_mtime_ns}"

    def _say_waiting(self) -> None:
        print("Another start is installing; waiting for it to finish.", flush=True)

    def _build(self, wanted: dict[str, str]) -> None:
        stamped = self._stamped()
        if not self._works():
            self._create()
            stamped = {}
        self.stamp.unlink(missing_ok=True)
        installer = Installer(self.python, self.folder)
        for name, digest in wanted.items():
            if stamped.get(name) != digest:
                installer.install(self.root / name)
        self._write_stamp({**stamped, **wanted, "python": self._interpreter() or ""})

    def _works(self) -> bool:
        """Whether its Python starts, is new enough and finds its pip."""
        probe = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
        try:
            result = subprocess.run([self.python, "-c", probe], capture_output=True, check=False)
        except OSError:
            return False
        return result.returncode == 0

    def _create(self) -> None:
        if self.is_current():
            raise CannotStartError(
                f"The environment {self.folder} has no pip or too old a Python: "
                "start manage.py with the system's python3 to have it made anew."
            )
        if self.folder.exists():
            print(f"{self.folder} does not work any more; making it anew.", flush=True)
            self._remove()
        print(f"Making the environment {self.folder} with Python {_version()}.", flush=True)
        try:
            venv.EnvBuilder(with_pip=True, symlinks=True).create(self.folder)
        except subprocess.CalledProcessError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise CannotStartError(self._failed_sentence(error.output)) from error

    def _failed_sentence(self, output: bytes | str | None) -> str:
        text = output.decode(errors="replace") if isinstance(output, bytes) else output or ""
        if "No space left" in text or "Disk quota" in text:
            return f"The disk that holds {self.folder} is full: make room and start again."
        return (
            f"Python {_version()} at {sys.executable} cannot make a virtual environment with pip: "
            "install its venv module (Debian and Ubuntu: "
            f"`apt install python{_minor_version()}-venv`) and start again."
        )

    def _remove(self) -> None:
        if self.folder.is_symlink() or self.folder.is_file():
            self.folder.unlink()
        else:
            shutil.rmtree(self.folder)

    def _write_stamp(self, content: dict[str, str]) -> None:
        draft = self.stamp.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
        draft.replace(self.stamp)


def _version() -> str:
    return ".".join(str(part) for part in sys.version_info[:3])


def _minor_version() -> str:
    return ".".join(str(part) for part in sys.version_info[:2])
