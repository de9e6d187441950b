"""Methods of QwenPaw's classes, wrapped and put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MARK = "_ctxhealth_original"


class Patches:
    """``active`` is False once undone: a wrapper that somebody wrapped in turn then only passes."""

    def __init__(self) -> None:
        self.active = True
        self._done: list[tuple[Any, str, Any, Any]] = []

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> bool:
        """Replace ``owner.name`` by ``make(original)``; False where there is no such method.

        What an earlier copy of this plugin left behind is replaced, not wrapped again.
        """
        found = vars(owner).get(name)
        if found is None:
            return False
        static = isinstance(found, staticmethod)
        plain = found.__func__ if static else found
        original = found
        while hasattr(plain, _MARK):
            plain = getattr(plain, _MARK)
            original = staticmethod(plain) if static else plain
        if not callable(plain):
            return False
        made = make(plain)
        setattr(made, _MARK, plain)
        put = staticmethod(made) if static else made
        setattr(owner, name, put)
        self._done.append((owner, name, original, put))
        return True

    def undo(self) -> None:
        """Put back what is still ours."""
        self.active = False
        for owner, name, original, put in reversed(self._done):
            if vars(owner).get(name) is put:
                setattr(owner, name, original)
        self._done.clear()
