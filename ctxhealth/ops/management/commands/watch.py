"""`manage.py watch`: the same as `ctxhealth watch`, from a checkout."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.management.base import BaseCommand

from ctxhealth.cli.main import run, watch_arguments
from ctxhealth.cli.watch import watch


class Command(BaseCommand):
    help = "Follow all sessions of an agent product, new ones and sub-agents included."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        watch_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run(watch, Namespace(**options)))
