"""``ctxhealth plugin``: write an agent's plugin folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ctxhealth.agents.registry import PLUGINS
from ctxhealth.agents.vendoring import CannotMake, described
from ctxhealth.cli.errors import CannotSend


def plugin_arguments(parser: ArgumentParser) -> None:
    places = "; ".join(f"{name}: {plugin.where}" for name, plugin in PLUGINS.items())
    parser.add_argument("product", choices=list(PLUGINS), help="for which agent")
    parser.add_argument("dest", type=Path, help=f"the agent's plugin folder ({places})")


def plugin(options: Namespace) -> int:
    """Write the folder, say where it is. Raises CannotSend (2) where that cannot be done."""
    chosen = PLUGINS[options.product]
    try:
        files = chosen.make(options.dest)
    except CannotMake as error:
        raise CannotSend(str(error)) from error
    print(described(files, options.dest / files[0].relative_to(options.dest).parts[0]))
    print(f"Restart {chosen.product}, then set the server's address and an agent token in it.")
    return 0
