"""The ``ctxhealth`` command: arguments and exit codes."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ctxhealth import __version__
from ctxhealth.agents.bridging import server_arguments
from ctxhealth.cli.bridge import bridge, bridge_arguments
from ctxhealth.cli.compact import compact
from ctxhealth.cli.errors import INTERRUPTED, UNREAD, CannotSend
from ctxhealth.cli.plugin import plugin, plugin_arguments
from ctxhealth.cli.products import FOLDERS
from ctxhealth.cli.replay import replay
from ctxhealth.cli.tail import tail
from ctxhealth.cli.watch import watch
from ctxhealth.readers.registry import readable

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0 done, 2 wrong input, 3 refused by the server, 4 the target
    cannot be reached, 130 interrupted, 141 nobody reads the output any more."""
    parser = argparse.ArgumentParser(prog="ctxhealth", description="Context health of LLM agents.")
    parser.add_argument("--version", action="version", version=f"ctxhealth {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    about = "send one session file, whole or while it grows"
    tail_arguments(commands.add_parser("tail", help=about, description=about))
    about = "follow all sessions of an agent product, new ones and sub-agents included"
    watch_arguments(commands.add_parser("watch", help=about, description=about))
    about = "say what is wrong in a recorded stream or session file, or play it into a server"
    replay_arguments(commands.add_parser("replay", help=about, description=about))
    about = "plan the deterministic fallback over an exported history, or write what it leaves"
    compact_arguments(commands.add_parser("compact", help=about, description=about))
    about = "write the plugin folder of an agent, ready to be dropped in"
    plugin_arguments(commands.add_parser("plugin", help=about, description=about))
    about = "follow a running agent from outside and carry commands to it"
    bridge_arguments(commands.add_parser("bridge", help=about, description=about))
    options = parser.parse_args(argv)
    known = {
        "tail": tail, "watch": watch, "replay": replay, "compact": compact,
        "plugin": plugin, "bridge": bridge,
    }  # fmt: skip
    return run(known[options.command], options)


def run(command: Command, options: argparse.Namespace) -> int:
    """Run ``command`` and turn what stops it into one sentence and an exit code."""
    try:
        with _only_our_words():
            code = command(options)
            sys.stdout.flush()
            return code
    except CannotSend as error:
        print(error, file=sys.stderr)
        return error.code
    except BrokenPipeError:
        # Who read the output has seen enough. What is left of it must not be tried at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except KeyboardInterrupt:
        return INTERRUPTED


@contextmanager
def _only_our_words() -> Iterator[None]:
    """Hush the SDK's log while the command says the same to a person, and only that long."""
    log = logging.getLogger("ctxhealth.client")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def tail_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help=f"a session file: {readable()}")
    parser.add_argument(
        "--follow", "-f", action="store_true", help="go on while the file grows, until Ctrl-C"
    )
    parser.add_argument("--chat", help="the chat's id; the session's own where not given")
    parser.add_argument(
        "--no-subagents", action="store_true", help="leave out the files of its sub-agents"
    )
    _common(parser, "one for this file, such as `claude-code a6e4c2a0 (k7f2)`")


def watch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("product", choices=list(FOLDERS), help="whose sessions")
    places = ", ".join(str(folder()) for folder in FOLDERS.values())
    parser.add_argument(
        "folder", type=Path, nargs="?", help=f"where they are; if not given {places}"
    )
    parser.add_argument(
        "--once", action="store_true", help="send what is there and end, instead of following"
    )
    parser.add_argument(
        "--since-days", type=float, metavar="N",
        help="leave out files that did not change in the last N days",
    )  # fmt: skip
    _common(parser, "one for this host and folder, such as `claude-code on myhost (k7f2)`")


def replay_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, help="events as agents send them, one a line, or a session file"
    )
    parser.add_argument("--url", help="play it into this server; without, the diagnosis is printed")
    parser.add_argument("--token", help="an agent token; better in CTXHEALTH_TOKEN or a file")
    parser.add_argument("--token-file", type=Path, help="a file that holds the agent token")
    parser.add_argument("--agent", default="replay", help="the agent's name on the pages")
    parser.add_argument("--chat", help="the chat's id on the server; file and time if not given")
    parser.add_argument(
        "--speed", type=_speed, metavar="N",
        help="N times as fast as it happened (1: in real time); at once if not given",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the diagnosis as JSON")
    parser.add_argument("--quiet", "-q", action="store_true", help="say only what went wrong")


def compact_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, help="an exported history or a backup (JSON), or a stream of events"
    )
    parser.add_argument(
        "--target", type=_from(0), metavar="N",
        help="tokens to come down to; 0.8 x the smallest limit that a stream names if not given",
    )  # fmt: skip
    parser.add_argument(
        "--scope", choices=["history", "prompt"],
        help="what the target counts: the history, or with system prompt and tools the prompt",
    )  # fmt: skip
    parser.add_argument(
        "--keep-turns", type=_from(1), default=1, metavar="N",
        help="the newest N turns are never folded to an extract (1)",
    )  # fmt: skip
    parser.add_argument("--chat", help="which chat, where a stream tells of several")
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help="write the history here")
    parser.add_argument(
        "--force", action="store_true",
        help="write over a file that exists, the input too; it is kept beside as a backup",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the plan as JSON")
    parser.add_argument("--quiet", "-q", action="store_true", help="say only what went wrong")


def _from(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"a whole number from {least}")
        return value

    return number


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 < speed < 1_000_000:
        raise argparse.ArgumentTypeError("a number above 0")
    return speed


def _common(parser: argparse.ArgumentParser, named: str) -> None:
    server_arguments(parser, named)
    parser.add_argument(
        "--again", action="store_true",
        help="forget what was sent already and begin anew, as a new agent where no name is given",
    )  # fmt: skip
