"""``ctxhealth bridge reasonix``: follows a running Reasonix over its own HTTP server.

It sees the sessions that this ``reasonix serve`` drives. Nothing of the conversation leaves the
machine but excerpts, redacted here; nothing is asked of Reasonix that changes it, but commands.
"""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path

from ctxhealth.agents.bridging import (
    CannotBridge,
    Line,
    Words,
    carry_out,
    common_arguments,
    secret_of,
)
from ctxhealth.agents.reasonix.bridge import Bridge
from ctxhealth.agents.reasonix.host import Host, NotAllowed, NotThere, Unreachable
from ctxhealth.agents.reasonix.orders import COMMANDS, Orders

_REASONIX = "http://127.0.0.1:8787"


def arguments(parser: ArgumentParser) -> None:
    """Options of ``ctxhealth bridge reasonix``."""
    parser.add_argument(
        "--reasonix", default=_REASONIX, metavar="URL",
        help=f"where `reasonix serve` listens ({_REASONIX})",
    )  # fmt: skip
    parser.add_argument("--reasonix-token", help="its token; better in a file")
    parser.add_argument(
        "--reasonix-token-file", type=Path, help="the file that `reasonix serve --token-file` reads"
    )
    common_arguments(parser, "reasonix")


def run(options: Namespace) -> int:
    """Follow until interrupted; 2 wrong arguments, 3 refused by Reasonix or the server."""
    return carry_out(_bridge, options)


def _bridge(options: Namespace, words: Words) -> int:
    host = _host(options)
    line = Line(
        options, words, product="reasonix", source=host.url, commands=COMMANDS,
        runtime_version=_version(host),
    )  # fmt: skip
    try:
        bridge = Bridge(host, line, words)
        if not options.read_only:
            Orders(bridge).serve(line.reporter)
        words.say(f"Following {host.url}. {line.url}/")
        words.say(f"Agent: {line.reporter.agent}.")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            bridge.run()
        return 0
    finally:
        line.close()


def _host(options: Namespace) -> Host:
    def token() -> str | None:
        with suppress(CannotBridge):
            return secret_of(
                options.reasonix_token, options.reasonix_token_file, "--reasonix-token-file"
            )
        return None

    secret_of(options.reasonix_token, options.reasonix_token_file, "--reasonix-token-file")
    try:
        return Host(options.reasonix, token)
    except ValueError as error:
        raise CannotBridge(f"--reasonix: {error}.") from error


def _version(host: Host) -> str | None:
    """As Reasonix states it, where it does and answers already."""
    try:
        stated = host.get("/goal-diagnostics")["metadata"]["applicationVersion"]
    except (Unreachable, NotAllowed, NotThere, KeyError, TypeError):
        return None
    return str(stated).partition("-")[0] or None
