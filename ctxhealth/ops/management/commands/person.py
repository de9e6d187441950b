"""`manage.py person NAME --role ROLE`: makes an account or changes it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ctxhealth.store import writes
from ctxhealth.store.people import ROLES


class Command(BaseCommand):
    help = "Make a person, change their role, or disable them; prints a login link for one use."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the name they sign in with")
        parser.add_argument(
            "--role", choices=ROLES, help="viewer looks, operator presses, admin configures"
        )
        parser.add_argument(
            "--disable", action="store_true", help="end their sessions and refuse them from now on"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name, role = options["name"], options["role"]
        if bool(role) == options["disable"]:
            raise CommandError("Give either --role, or --disable.")
        try:
            if role is None:
                self._disable(name)
            else:
                self._give(name, role)
        except ValueError as error:
            raise CommandError(f"{error}.") from error

    def _disable(self, name: str) -> None:
        if not writes.user_disable(username=name):
            raise CommandError(f"name: there is no person called {name!r}.")
        self.stdout.write(f"{name} is disabled.")

    def _give(self, name: str, role: Any) -> None:
        user = writes.user_give(username=name, role=role)
        origin = settings.CTXHEALTH_URL or "http://127.0.0.1:8000"
        link = writes.login_link_create(user=user)
        self.stderr.write(f"{name} is {role}. This signs in once, within an hour:")
        self.stdout.write(origin + link)
