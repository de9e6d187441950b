"""`manage.py tail`: the same as `ctxhealth tail`, from a checkout."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.management.base import BaseCommand

from ctxhealth.cli.main import run, tail_arguments
from ctxhealth.cli.tail import tail


class Command(BaseCommand):
    help = "Send one session file, whole or while it grows."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        tail_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run(tail, Namespace(**options)))
