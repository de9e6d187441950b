"""``python -m ctxhealth.demo``: start the demo agents, each in a process of its own."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ctxhealth.demo.agents import AGENTS
from ctxhealth.demo.process import run_agent


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    token = _token(options)
    if not token:
        print("No agent token: give --token-file or set CTXHEALTH_TOKEN.", file=sys.stderr)
        return 2
    unknown = [name for name in options.agent if name not in AGENTS]
    if unknown:
        print(f"No demo agent {unknown[0]!r}; there are {', '.join(AGENTS)}.", file=sys.stderr)
        return 2
    if options.here:
        run_agent(
            AGENTS[options.agent[0]],
            url=options.url,
            token=token,
            folder=options.folder,
            pace=options.pace,
        )
        return 0
    return _supervise(options, options.agent or list(AGENTS), token)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ctxhealth.demo", description=__doc__)
    parser.add_argument("--url", default=os.environ.get("CTXHEALTH_URL", "http://127.0.0.1:8000"))
    parser.add_argument("--token-file", type=Path, help="file with the agent token")
    parser.add_argument("--agent", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--folder", type=Path, help="where backups of histories are kept")
    parser.add_argument("--pace", type=float, default=1.0, help="0.1 lives ten times as fast")
    parser.add_argument("--here", action="store_true", help="run one --agent in this process")
    return parser


def _token(options: argparse.Namespace) -> str:
    if options.token_file is None:
        return os.environ.get("CTXHEALTH_TOKEN", "").strip()
    try:
        return str(options.token_file.read_text("utf-8")).strip()
    except OSError as error:
        print(f"{options.token_file}: {error.strerror}", file=sys.stderr)
        return ""


def _supervise(options: argparse.Namespace, names: list[str], token: str) -> int:
    """Run each agent as a child; end all of them when told to stop."""
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    # Before the children: they take seconds to start, and by then the server may be gone or
    # have asked for the end.
    parent = os.getppid()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    children = [_child(options, name, token) for name in names]
    try:
        # Orphaned (the server was killed) means over: demo agents never outlive their demo.
        while not stopping and os.getppid() == parent and any(c.poll() is None for c in children):
            time.sleep(0.2)
    finally:
        _end(children)
    return 0


def _child(options: argparse.Namespace, name: str, token: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ctxhealth.demo", "--here", "--agent", name]
    command += ["--url", options.url, "--pace", str(options.pace)]
    if options.folder is not None:
        command += ["--folder", str(options.folder)]
    # By environment, not by argument: arguments can be read by every user of the machine.
    return subprocess.Popen(command, env={**os.environ, "CTXHEALTH_TOKEN": token})


def _end(children: list[subprocess.Popen[bytes]]) -> None:
    for child in children:
        if child.poll() is None:
            child.terminate()
    deadline = time.monotonic() + 5
    for child in children:
        try:
            child.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()


if __name__ == "__main__":
    sys.exit(main())
