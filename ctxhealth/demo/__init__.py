"""Demo agents: separate processes that live through real incidents, speaking only the public SDK.

Each has a real history, the engine, and a scripted provider in place of a model. What the pages
show of them is measured from their events like anybody else's.
"""

from __future__ import annotations
