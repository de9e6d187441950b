"""Session files of agent products -> the events that a live agent would send."""

from __future__ import annotations
