"""``ctxhealth bridge``: follow a running agent from outside and carry commands to it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ctxhealth.agents.registry import BRIDGES


def bridge_arguments(parser: ArgumentParser) -> None:
    products = parser.add_subparsers(dest="product", required=True, metavar="PRODUCT")
    for name, known in BRIDGES.items():
        about = f"report {known.product}'s sessions and carry commands to it"
        known.arguments(products.add_parser(name, help=about, description=about))


def bridge(options: Namespace) -> int:
    """Run until interrupted; the exit code is the bridge's own."""
    return BRIDGES[options.product].run(options)
