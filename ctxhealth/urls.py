"""Every address of the server over http; websockets are in asgi.py."""

from __future__ import annotations

from django.urls import include, path

from ctxhealth.ingest import http as intake
from ctxhealth.ops import views as ops
from ctxhealth.web.api.urls import urlpatterns as api_urls

urlpatterns = [
    path("healthz", ops.healthz, name="healthz"),
    path("readyz", ops.readyz, name="readyz"),
    path("metrics", ops.metrics, name="metrics"),
    path("api/v1/events", intake.events, name="intake"),
    path("api/", include(api_urls)),
    path("", include("ctxhealth.web.urls")),
]
