"""pip with hash-pinned requirements, one line of progress per package, and clear sentences."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ctxhealth.bootstrap.errors import CannotStartError

_POLL_SECONDS = 0.15
_IGNORING = re.compile(r"^Ignoring [A-Za-z0-9._-]+: markers ")
_COLLECTING = re.compile(r"^Collecting ([A-Za-z0-9._-]+)==(\S+)")
_PRESENT = re.compile(r"^Requirement already satisfied: ([A-Za-z0-9._-]+)==(\S+)")
# A package that lies in a folder is named by its file.
_PROCESSING = re.compile(r"^Processing \S*?([A-Za-z0-9._]+)-(\d[^-/\s]*)[^/\s]*\.(?:whl|gz)\b")
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)")


class Installer:
    """Fills one environment; `folder` is its root, where the whole output is kept as a log."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python = python
        self._log = folder / "ctxhealth-install.log"
        self._site = next(iter(sorted(folder.glob("lib/python3*/site-packages"))), folder)

    def install(self, requirements: Path) -> None:
        """Install what `requirements` pins; raises CannotStartError with what went wrong."""
        self._drop_half_installed()
        total = len(_pinned(requirements))
        print(f"Installing {total} packages of {requirements.name}.", flush=True)
        self._keep_log(self._run_pip(requirements, total))

    def _drop_half_installed(self) -> None:
        """pip writes RECORD last: a package without one was cut off and must come again."""
        for info in self._site.glob("*.dist-info"):
            if not (info / "RECORD").exists():
                shutil.rmtree(info)

    def _run_pip(self, requirements: Path, total: int) -> list[str]:
        command = [
            *(str(self._python), "-m", "pip", "install", "--require-hashes", "--no-input"),
            *("--disable-pip-version-check", "--progress-bar", "off", "--retries", "3"),
            *("-r", str(requirements)),
        ]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        assert process.stdout is not None
        lines: list[str] = []
        try:
            self._follow(iter(process.stdout), lines, total)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if process.wait() != 0:
            self._keep_log(lines)
            raise CannotStartError(_why(lines, requirements, self._log))
        return lines

    def _follow(self, output: Iterator[str], lines: list[str], total: int) -> None:
        """Turn pip's lines into one line of progress per package fetched, then per one laid."""
        counter = _Counter(total)
        laying: _Laying | None = None
        try:
            for line in output:
                text = line.rstrip()
                lines.append(text)
                counter.see(text)
                if text.startswith("Installing collected packages:"):
                    laying = _Laying(self._site, names=text.partition(":")[2].split(","))
                    laying.start()
        finally:
            if laying is not None:
                laying.stop()

    def _keep_log(self, lines: list[str]) -> None:
        # The sentence that follows matters more, and a full disk is what it may say.
        with suppress(OSError):
            self._log.write_text("\n".join(lines) + "\n", encoding="utf-8")


class _Counter:
    """Counts the packages pip has looked at, and says which."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._count = 0

    def see(self, line: str) -> None:
        if _IGNORING.match(line):
            self._total -= 1
        elif found := _COLLECTING.match(line) or _PROCESSING.match(line):
            self._say("fetching", found)
        elif found := _PRESENT.match(line):
            self._say("present", found)

    def _say(self, what: str, found: re.Match[str]) -> None:
        self._count += 1
        print(f"  {what} {self._count}/{self._total} {found[1]} {found[2]}", flush=True)


class _Laying(threading.Thread):
    """Watches packages arrive in site-packages, as pip itself says nothing until the end."""

    def __init__(self, site: Path, *, names: list[str]) -> None:
        super().__init__(daemon=True)
        self._site = site
        self._wanted = {_normal(name.strip()) for name in names}
        self._seen: set[str] = set()
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(_POLL_SECONDS):
            self._report()
        self._report()

    def stop(self) -> None:
        self._done.set()
        self.join()

    def _report(self) -> None:
        for record in sorted(self._site.glob("*.dist-info/RECORD")):
            name, _, version = record.parent.name.removesuffix(".dist-info").partition("-")
            if _normal(name) in self._wanted - self._seen:
                self._seen.add(_normal(name))
                count = f"{len(self._seen)}/{len(self._wanted)}"
                print(f"  installing {count} {name} {version}", flush=True)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pinned(requirements: Path) -> list[str]:
    lines = requirements.read_text(encoding="utf-8").splitlines()
    return [match[1] for line in lines if (match := _PINNED.match(line))]


_REASONS = (
    (
        ("No space left on device", "Disk quota exceeded"),
        "The disk is full while installing {file}: make room and start again.",
    ),
    (
        ("DO NOT MATCH THE HASHES",),
        "The index gave a package that is not the one pinned in {file} (its hash differs): "
        "nothing of it was installed; see {log}.",
    ),
    (
        ("Permission denied", "Read-only file system"),
        "The environment cannot be written by this user while installing {file}; see {log}.",
    ),
    (
        (
            "Failed to establish a new connection",
            "NewConnectionError",
            "Temporary failure in name resolution",
            "Name or service not known",
            "Network is unreachable",
            "Connection refused",
            "Read timed out",
            "ConnectTimeoutError",
            "ProxyError",
            "SSLError",
            "(from versions: none)",
        ),
        "The package index cannot be reached, and the packages of {file} are needed once: "
        "check the network, the proxy or pip's index settings, and start again.",
    ),
    (
        ("Failed building wheel", "subprocess-exited-with-error", "Failed to build"),
        "A package of {file} has no ready build for this machine and could not be built; "
        "see {log}.",
    ),
)


def _why(lines: list[str], requirements: Path, log: Path) -> str:
    output = "\n".join(lines)
    for marks, sentence in _REASONS:
        if any(mark in output for mark in marks):
            return sentence.format(file=requirements.name, log=log)
    errors = [line for line in lines if line.startswith("ERROR:")]
    last = errors[-1].removeprefix("ERROR:").strip() if errors else "it gave no reason"
    return f"pip could not install {requirements.name} ({last}); see {log}."
