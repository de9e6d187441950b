"""`manage.py issue_token`: a bearer token for an agent or for a program that reads or acts."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ctxhealth.store import writes

SCOPES = {
    "ingest": "report events",
    "command": "receive commands",
    "read": "read the HTTP API and /metrics",
    "operate": "read, and press commands over the HTTP API",
}


class Command(BaseCommand):
    help = "Make a token and print it. It is shown this once; only its hash is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what the token is for, as the list of tokens shows it")
        said = "; ".join(f"{scope}: {what}" for scope, what in SCOPES.items())
        parser.add_argument(
            "--scopes",
            default="ingest,command",
            help=f"with commas between, ingest,command where not given ({said})",
        )
        parser.add_argument("--agent", help="the one agent name that may use it")

    def handle(self, *args: Any, **options: Any) -> None:
        scopes = [word.strip() for word in options["scopes"].split(",") if word.strip()]
        try:
            made = writes.token_create(
                name=options["name"], scopes=scopes, agent_name=options["agent"]
            )
        except ValueError as error:
            raise CommandError(f"{error}.") from error
        self.stdout.write(made.secret)
