"""To be written."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace


def arguments(parser: ArgumentParser) -> None:
    """Options of ``ctxhealth bridge reasonix``."""


def run(options: Namespace) -> int:
    raise NotImplementedError
