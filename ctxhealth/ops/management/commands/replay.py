"""`manage.py replay`: the same as `ctxhealth replay`, from a checkout."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.management.base import BaseCommand

from ctxhealth.cli.main import replay_arguments, run
from ctxhealth.cli.replay import replay


class Command(BaseCommand):
    help = "Say what is wrong in a recorded stream or session file, or play it into a server."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        replay_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run(replay, Namespace(**options)))
