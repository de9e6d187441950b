"""`manage.py screenshots`: draw the documents' pictures anew."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ctxhealth.ops import pictures


class Command(BaseCommand):
    help = "Start a demo, wait for its incidents, and take the documents' pictures of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--folder",
            type=Path,
            default=Path(settings.BASE_DIR) / "docs" / "images",
            help="where the pictures go; docs/images unless said otherwise",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"]
        folder.mkdir(parents=True, exist_ok=True)
        self.stdout.write("The demo's agents need some minutes for their incidents.")
        try:
            for path in pictures.take(folder):
                self.stdout.write(str(path))
        except pictures.CannotPicture as problem:
            raise CommandError(str(problem)) from problem
