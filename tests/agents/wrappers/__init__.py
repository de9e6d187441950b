"""Wrappers around client libraries: on the published packages, and on doubles of their shapes."""

from __future__ import annotations
