"""`manage.py plugin`: the same as `ctxhealth plugin`, from a checkout."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.management.base import BaseCommand

from ctxhealth.cli.main import run
from ctxhealth.cli.plugin import plugin, plugin_arguments


class Command(BaseCommand):
    help = "Write the plugin folder of an agent."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        plugin_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run(plugin, Namespace(**options)))
