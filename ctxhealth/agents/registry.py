"""Which plugins can be made and which bridges can be run, by the names users type."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Plugin:
    """``module`` has ``make(dest: Path) -> list[Path]``: it writes the folder below ``dest``."""

    product: str
    module: str
    where: str

    def make(self, dest: Path) -> list[Path]:
        made: list[Path] = import_module(self.module).make(dest)
        return made


@dataclass(frozen=True)
class Bridge:
    """``module`` has ``arguments(parser)`` and ``run(options) -> int``, the exit code."""

    product: str
    module: str

    def arguments(self, parser: ArgumentParser) -> None:
        import_module(self.module).arguments(parser)

    @property
    def run(self) -> Callable[[Namespace], int]:
        module: Any = import_module(self.module)
        ran: Callable[[Namespace], int] = module.run
        return ran


PLUGINS = {
    "agent-zero": Plugin("Agent Zero", "ctxhealth.agents.agent_zero", "usr/plugins"),
    "qwenpaw": Plugin("QwenPaw", "ctxhealth.agents.qwenpaw", "~/.qwenpaw/plugins"),
}
BRIDGES = {
    "maka": Bridge("Maka", "ctxhealth.agents.maka"),
    "reasonix": Bridge("Reasonix", "ctxhealth.agents.reasonix"),
}
