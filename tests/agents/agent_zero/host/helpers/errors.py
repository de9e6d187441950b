"""The exceptions that steer a turn."""

from __future__ import annotations


class HandledException(Exception):
    pass


class InterventionException(Exception):
    pass
