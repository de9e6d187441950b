"""What events mean: the fold, loads and windows, outcomes, latches, findings, state.

Pure functions on Structs. No Django, no clock, no randomness, no I/O.
"""

from __future__ import annotations
