"""What an import may cost."""

from __future__ import annotations

# Files of one drop.
FILES = 50
# A packed file may unpack to so many times the limit of a plain one.
UNPACKED_TIMES = 4
# Read at once, and between two saved places.
CHUNK = 1024 * 1024
# Events that wait for one commit; live agents' events go between two of them.
BATCH = 250
# As much is looked at to learn which session a file holds.
PROBE_BYTES = 16 * 1024 * 1024
# Lines in a row without anything to tell; real sessions have some thousands at most.
BARREN = 1_000_000
# Troubles that are kept one by one; the others are counted.
TROUBLES = 200
SHAPE_CHARS = 120
# How often progress is written.
PROGRESS_S = 0.4
