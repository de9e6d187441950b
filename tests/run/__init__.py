"""`manage.py test`: sets up what the tests need, runs them on both databases, sums up."""

from __future__ import annotations
