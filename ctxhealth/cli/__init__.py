"""The command ``ctxhealth``: session files into a running server."""

from __future__ import annotations

from ctxhealth.cli.main import main

__all__ = ["main"]
