"""`manage.py up`: from a fresh checkout to a page, a login and a token, in one command."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

import ctxhealth
from ctxhealth.ops import first_start, serving
from ctxhealth.ops.demo_agents import DemoAgents
from ctxhealth.store import writes
from ctxhealth.store.writes.people import LOGIN_MINUTES


class Command(BaseCommand):
    """Database, first login, server, and with --demo agents to look at."""

    help = "Make the database, print address, one-time login and agent token, and serve."

    def add_arguments(self, parser: ArgumentParser) -> None:
        serving.add_address_arguments(parser)
        parser.add_argument("--demo", action="store_true", help="also run demo agents")
        parser.add_argument(
            "--new-token", action="store_true", help="make and print another agent token"
        )
        parser.add_argument(
            "--no-open", action="store_true", help="do not open the login in a browser"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, serving.end_on_signal)
        first_start.data_dir_prepare()
        listener, address = serving.listen(options["host"], options["port"])
        with listener, serving.data_dir_held():
            if first_start.database_prepare():
                self.stdout.write("The database is ready.")
            login = writes.login_link_create(user=first_start.first_admin())
            token = first_start.first_token(wanted=options["new_token"])
            demo = self._demo(address) if options["demo"] else None
            self._serve(listener, address, login, token, demo, opens=not options["no_open"])

    def _demo(self, address: serving.Address) -> DemoAgents:
        return DemoAgents(address.local, first_start.demo_token_file())

    def _serve(
        self,
        listener: serving.Listener,
        address: serving.Address,
        login: str,
        token: str | None,
        demo: DemoAgents | None,
        *,
        opens: bool,
    ) -> None:
        def ready() -> None:
            self._say(address, login, token, demo)
            if demo is not None:
                demo.start()
            if opens and _has_screen():
                webbrowser.open(address.origin + login)

        def end() -> None:
            if demo is not None:
                demo.stop()

        try:
            serving.run(listener, ready, end)
        finally:
            end()

    def _say(
        self, address: serving.Address, login: str, token: str | None, demo: DemoAgents | None
    ) -> None:
        lines = [
            f"ctxhealth {ctxhealth.__version__} serves at {address.origin}",
            "",
            f"  Log in (once, within {LOGIN_MINUTES} minutes):  {address.origin}{login}",
            *_token_lines(address, token),
            *(["", "Demo agents are connecting."] if demo else []),
            "",
            "Ctrl-C ends it.",
        ]
        self.stdout.write("\n".join(lines))
        self.stdout.flush()


def _token_lines(address: serving.Address, token: str | None) -> list[str]:
    if token is None:
        return ["  Agent token: as printed on the first start; `up --new-token` makes another."]
    return [
        f"  Agent token (shown this once):  {token}",
        "",
        "Connect an agent, or follow a Claude Code session, in another terminal:",
        "",
        f"  export CTXHEALTH_URL={address.origin}",
        f"  export CTXHEALTH_TOKEN={token}",
        "  python3 manage.py tail SESSION.jsonl --follow",
    ]


def _has_screen() -> bool:
    """Somebody sits at this machine: a terminal, no remote shell, and a display."""
    if not sys.stdout.isatty() or os.environ.get("SSH_CONNECTION"):
        return False
    if sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
