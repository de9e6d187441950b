from __future__ import annotations

from django.apps import AppConfig


class StoreConfig(AppConfig):
    name = "ctxhealth.store"
    label = "store"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from ctxhealth.store import (
            adapters,
            checks,  # noqa: F401  registers the system checks
        )

        adapters.register()
