"""The project that everything belongs to until there are several."""

from __future__ import annotations

from ctxhealth.store.models import Project


def default_project() -> Project:
    project, _ = Project.objects.get_or_create(slug="default", defaults={"name": "Default"})
    return project
