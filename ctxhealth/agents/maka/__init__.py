"""The bridge to Maka: follows its runtime host from outside, as one more client with few rights.

Sessions become chats, provider requests and their usage become requests, Maka's decisions become
compaction attempts. Operators may have Maka compact, and stop a turn; for what Maka offers nobody
the refusal says what to do there.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from ctxhealth.agents.bridging import (
    CannotBridge,
    Words,
    carry_out,
    common_arguments,
    secret_of,
)
from ctxhealth.agents.maka.bridge import LOCAL, Bridge
from ctxhealth.agents.maka.host import DEFAULT_HOST
from ctxhealth.agents.maka.sockets import address_problem

_MOST_DAYS = 36_500


def arguments(parser: ArgumentParser) -> None:
    """Options of ``ctxhealth bridge maka``."""
    parser.add_argument(
        "--host", default=os.environ.get("MAKA_RUNTIME_HOST") or DEFAULT_HOST, metavar="ADDRESS",
        help=f"the runtime host: ws://..., unix:<path>, or {LOCAL} for this user's own; "
        f"{DEFAULT_HOST} if not given",
    )  # fmt: skip
    parser.add_argument(
        "--credential-file", type=Path, metavar="FILE",
        help="a file that holds the host's access credential; else MAKA_RUNTIME_HOST_CREDENTIAL",
    )  # fmt: skip
    parser.add_argument(
        "--since-days", type=_days, default=7, metavar="N",
        help="leave out sessions that were not used in the last N days, until they are (7)",
    )  # fmt: skip
    parser.add_argument(
        "--untested-epoch", type=int, metavar="N",
        help="speak to a host of this epoch, which was read in its source but never run",
    )  # fmt: skip
    common_arguments(parser, "maka")
    parser.set_defaults(text="none")


def _days(text: str) -> float:
    days = float(text)
    if not 0 <= days <= _MOST_DAYS:
        raise ArgumentTypeError(f"{text!r} is not between 0 and {_MOST_DAYS:,}")
    return days


def run(options: Namespace) -> int:
    """Run until interrupted; the exit code: 0, 2 wrong input, 3 refused."""
    return carry_out(_bridge, options)


def _bridge(options: Namespace, words: Words) -> int:
    problem = None if options.host == LOCAL else address_problem(options.host)
    if problem is not None:
        raise CannotBridge(f"--host: {problem}.")
    credential = secret_of(None, options.credential_file, "--credential-file")
    variable = "MAKA_RUNTIME_HOST_CREDENTIAL"
    credential = credential or secret_of(os.environ.get(variable), None, variable)
    if credential is None and options.host.startswith("ws"):
        raise CannotBridge(
            "No credential for the runtime host: set MAKA_RUNTIME_HOST_CREDENTIAL or give "
            "--credential-file. `maka runtime-host access issue` makes one: docs/agents/maka.md."
        )
    bridge = Bridge(options, words, credential)
    try:
        bridge.run()
    except KeyboardInterrupt:
        return 0
    return 0
