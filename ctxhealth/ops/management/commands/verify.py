"""`manage.py verify`: is what is shown what the log says?"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ctxhealth.store.verify import verify

SHOWN = 100


class Command(BaseCommand):
    help = (
        "Fold every chat's log again and compare with what is stored. Safe beside a running "
        "server without --repair."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--chat", type=int, help="this chat alone, by its number")
        parser.add_argument(
            "--repair", action="store_true", help="rebuild what differs; stop the server first"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        report = verify(chat=options["chat"], repair=options["repair"])
        for problem in report.problems[:SHOWN]:
            self.stdout.write(f"{problem.where}: {problem.what}")
        if len(report.problems) > SHOWN:
            self.stdout.write(f"... and {len(report.problems) - SHOWN:,} more")
        said = f"{report.chats:,} chats, {report.events:,} events"
        if report.ok:
            self.stdout.write(f"{said}: the log and what is shown agree.")
        elif options["repair"]:
            self.stdout.write(f"{said}: {report.repaired:,} chats were rebuilt.")
        else:
            raise CommandError(f"{said}: {len(report.problems):,} differences; see --repair.")
