# mypy: ignore-errors
"""What Agent Zero calls when the plugin is installed, configured and removed."""

from __future__ import annotations

from usr.plugins.ctxhealth.helpers import life


def install(**kwargs):
    life.start()


def pre_update(**kwargs):
    life.stop("updated")


def uninstall(**kwargs):
    life.stop("uninstalled", forget=True)


def save_plugin_config(settings=None, default=None, **kwargs):
    """Called before the settings are stored; what it returns is stored."""
    chosen = settings if settings is not None else default
    life.configure(chosen)
    return chosen
