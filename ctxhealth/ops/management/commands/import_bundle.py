"""`manage.py import_bundle FILE`: bring an incident in that another server wrote."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ctxhealth.bootstrap.errors import CannotStartError
from ctxhealth.ops import serving
from ctxhealth.store.bundles import BadBundle, Brought, import_bundle
from ctxhealth.store.bundles.form import MOST_BYTES


class Command(BaseCommand):
    help = (
        "Bring in an incident that another server wrote as a bundle. The same bundle again changes "
        "nothing. Stop the server first, or use its page Import."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a bundle, as an incident's page gives it")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            if path.stat().st_size > MOST_BYTES:
                raise CommandError(
                    f"{path.name}: larger than the {MOST_BYTES:,} bytes of a bundle."
                )
            data = path.read_bytes()
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from error
        try:
            with serving.data_dir_held():
                self._say(import_bundle(data))
        except CannotStartError as error:
            raise CommandError(str(error)) from error
        except BadBundle as error:
            raise CommandError(f"{path.name}: {error}.") from error

    def _say(self, brought: Brought) -> None:
        where = f"incident {brought.incident} of chat {brought.chat}"
        if brought.here:
            self.stdout.write(f"It was made here: {where}.")
        elif not brought.new:
            self.stdout.write(f"It is here already: {where}.")
        else:
            self.stdout.write(
                f"Imported as {where}: {brought.events:,} events, {brought.notes:,} notes."
            )
