"""The window of a model, where this installation has the table of them."""

from __future__ import annotations

from collections.abc import Callable


def window_of() -> Callable[[str], int | None] | None:
    """None in an installation that has only the client."""
    try:
        from ctxhealth.core.windows import table_window
    except ImportError:
        return None

    def look_up(model: str) -> int | None:
        found = table_window(model)
        return None if found is None else found.window

    return look_up
