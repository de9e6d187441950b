# mypy: ignore-errors
"""What Agent Zero calls when the plugin is installed, configured and removed.

It keeps this module longer than those it imports, so each call looks for the present ones.
"""

from __future__ import annotations


def install(**kwargs):
    _life().start()


def pre_update(**kwargs):
    _life().stop("updated")


def uninstall(**kwargs):
    _life().stop("uninstalled", forget=True)


def save_plugin_config(settings=None, default=None, **kwargs):
    """Called before the settings are stored; what it returns is stored."""
    chosen = settings if settings is not None else default
    _life().configure(chosen)
    return chosen


def _life():
    from usr.plugins.ctxhealth.helpers import life

    return life
