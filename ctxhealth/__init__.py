"""ctxhealth: the context health of live LLM agents, seen and acted on."""

from __future__ import annotations

__version__ = "0.1.0"
