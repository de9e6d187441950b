"""`manage.py serve`: the server alone, as a service manager starts it."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from ctxhealth.ops import first_start, serving


class Command(BaseCommand):
    """Migrates, serves, prints no secrets."""

    help = "Serve pages and agents; prints no login and no token (see `up` for those)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        serving.add_address_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, serving.end_on_signal)
        first_start.data_dir_prepare()
        listener, address = serving.listen(options["host"], options["port"])
        with listener, serving.data_dir_held():
            first_start.database_prepare()
            serving.run(listener, lambda: self._say(address))

    def _say(self, address: serving.Address) -> None:
        self.stdout.write(f"ctxhealth serves at {address.origin}")
        self.stdout.flush()
