from __future__ import annotations

from django.apps import AppConfig


class OpsConfig(AppConfig):
    """Checks, metrics, health and the commands that keep a server well."""

    name = "ctxhealth.ops"
    label = "ops"

    def ready(self) -> None:
        from ctxhealth.ops import checks, departures  # noqa: F401  registers them
