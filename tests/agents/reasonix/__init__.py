"""Reasonix: a faithful fake of its HTTP server, recorded streams, and the real thing."""

from __future__ import annotations
