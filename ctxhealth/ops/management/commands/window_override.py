"""`manage.py window_override`: state a model's window above every other source."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ctxhealth.ops.rejudged import rejudged
from ctxhealth.store import queries, writes


class Command(BaseCommand):
    help = (
        "List, set or end what operators say about windows. Stored chats are judged again, by the "
        "server where one runs, else at once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        does = parser.add_subparsers(dest="does", required=True)
        does.add_parser("list", help="those in force")
        state = does.add_parser("set", help="state a window; an earlier word for the same ends")
        state.add_argument("model", help="a model's id, or a pattern with * and ?")
        state.add_argument("window", type=int, help="tokens that the model can hold")
        state.add_argument("--max-input", type=int, help="tokens that a prompt may use, if less")
        state.add_argument("--provider", default="", help="this provider alone")
        state.add_argument("--agent", help="the chats of this agent alone")
        state.add_argument("--note", default="", help="why, for whoever reads the list")
        end = does.add_parser("end", help="end one")
        end.add_argument("number", type=int, help="its number in the list")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["does"] == "list":
            self._list()
            return
        try:
            self._set(options) if options["does"] == "set" else self._end(options["number"])
        except ValueError as error:
            raise CommandError(f"{error}.") from error
        self.stdout.write(rejudged())

    def _list(self) -> None:
        for row in queries.window_overrides():
            parts = [f"{row.id}: {row.model} {row.window:,}"]
            if row.max_input is not None:
                parts.append(f"max input {row.max_input:,}")
            if row.provider:
                parts.append(f"provider {row.provider}")
            if row.agent is not None:
                parts.append(f"agent {row.agent}")
            if row.note:
                parts.append(row.note)
            self.stdout.write(", ".join(parts))

    def _set(self, options: dict[str, Any]) -> None:
        names = ("model", "window", "max_input", "provider", "agent", "note")
        writes.window_override_set(**{name: options[name] for name in names})

    def _end(self, number: int) -> None:
        if not writes.window_override_end(override_id=number):
            raise CommandError(f"No override {number} is in force.")
