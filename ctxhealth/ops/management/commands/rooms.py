"""`manage.py rooms`: print the map of rooms, or write it into docs/architecture.md."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from ctxhealth.ops import rooms


class Command(BaseCommand):
    help = "Print which room of the code imports which; --write puts it into the documents."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help="update docs/architecture.md")

    def handle(self, *args: Any, **options: Any) -> None:
        root = settings.BASE_DIR / "ctxhealth"
        if not options["write"]:
            self.stdout.write(rooms.drawing(root))
            return
        path = settings.BASE_DIR / "docs" / "architecture.md"
        path.write_text(rooms.redrawn(path.read_text("utf-8"), root), "utf-8")
        self.stdout.write("docs/architecture.md is current.")
