"""Session files that people bring: kept in a spool, recognised, read and stored by one worker.

Readers turn them into events and the one writer takes those, as it does an agent's: batches wait
for their commit, so that a file of any size uses bounded memory and live agents come first.
"""

from __future__ import annotations
