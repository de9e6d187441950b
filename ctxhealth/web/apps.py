"""The pages operators work with."""

from __future__ import annotations

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "ctxhealth.web"
    label = "web"
