"""`manage.py doctor`: what would make this server slow, deaf or unsafe."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ctxhealth.ops import doctor


class Command(BaseCommand):
    help = "Look at settings, database, disk and hints, and say what is wrong."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        faults = 0
        for sign in doctor.examine():
            faults += not sign.good
            self.stdout.write(f"{'ok   ' if sign.good else 'FAULT'}  {sign.name}: {sign.says}")
        if faults:
            raise CommandError(f"{faults} {'fault' if faults == 1 else 'faults'} found.")
