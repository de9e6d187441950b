"""Findings: each code defined once, with its rule, its sentence and its advice."""

from __future__ import annotations
