"""`manage.py model_windows`: a newer table of model windows from its sources' files."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ctxhealth.ops.rejudged import rejudged
from ctxhealth.store import judging, model_table, writes
from ctxhealth.store.writes.model_table import put


class Command(BaseCommand):
    help = (
        "Make the table of model windows from files that you downloaded: LiteLLM's "
        "model_prices_and_context_window.json, models.dev's api.json or models.json. The server "
        "uses it from then on and judges stored chats by it again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, help="one or more of these files")
        parser.add_argument(
            "--output",
            type=Path,
            help="write the table here and leave the server's own and its chats alone",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rows = model_table.read_sources(options["files"])
        except ValueError as error:
            raise CommandError(f"{error}.") from error
        self.stdout.write(_said(model_table.difference(judging.table().models, rows)))
        text = model_table.table_text(rows)
        if options["output"] is not None:
            _put(options["output"], text)
            self.stdout.write(f"Written to {options['output']}.")
            return
        try:
            writes.model_table_put(text=text)
        except ValueError as error:
            raise CommandError(f"{error}.") from error
        self.stdout.write(f"In use from now on. {rejudged()}")


def _said(change: model_table.Change) -> str:
    return (
        f"{change.models:,} models: {change.added:,} new, {change.changed:,} with other sizes, "
        f"{change.removed:,} no longer listed."
    )


def _put(path: Path, text: str) -> None:
    try:
        put(path, text)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
