"""`manage.py bridge`: the same as `ctxhealth bridge`, from a checkout."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.management.base import BaseCommand

from ctxhealth.cli.bridge import bridge, bridge_arguments
from ctxhealth.cli.main import run


class Command(BaseCommand):
    help = "Follow a running agent from outside and carry commands to it."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        bridge_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run(bridge, Namespace(**options)))
