"""Addresses of imports."""

from __future__ import annotations

from django.urls import path

from ctxhealth.web.views import imports

urlpatterns = [
    path("import/", imports.imports, name="imports"),
    path("import/list/", imports.import_list, name="import_list"),
    path("import/<int:import_id>/", imports.import_detail, name="import_detail"),
]
