"""The SDK and the engine: the copies beside this folder, in a checkout the packages themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxhealth import client, engine
else:
    try:
        from .vendor import client, engine
    except ImportError:
        from ctxhealth import client, engine

__all__ = ["client", "engine"]
