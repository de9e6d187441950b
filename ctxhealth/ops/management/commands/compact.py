"""`manage.py compact`: the same as `ctxhealth compact`, from a checkout."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.management.base import BaseCommand

from ctxhealth.cli.compact import compact
from ctxhealth.cli.main import compact_arguments, run


class Command(BaseCommand):
    help = "Plan the deterministic fallback over an exported history, or write what it leaves."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        compact_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run(compact, Namespace(**options)))
