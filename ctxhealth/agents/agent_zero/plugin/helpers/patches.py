"""What is wrapped of the agent because no hook sees it, and how it is put back.

``History.compress`` runs in the background too, where no extension point is passed. A wrapper
calls the original whatever happens here, and does nothing else once the plugin is off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from . import host, passes
from .books import runtime

_ORIGINAL = "_ctxhealth_original"
Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]


def install() -> None:
    """Wrap, once: a wrapper of an earlier import of this module is replaced."""
    undo()
    made = runtime().patches
    for kind, name, wrapper in _targets():
        found = host.attribute("helpers.history", kind)
        own = found.__dict__.get(name) if found is not None else None
        if own is None:
            continue
        original = getattr(own, _ORIGINAL, own)
        wrapped = wrapper(original)
        setattr(wrapped, _ORIGINAL, original)
        setattr(found, name, wrapped)
        made.append((found, name, wrapped, original))


def undo() -> None:
    """Put every original back, but where somebody else wrapped ours: that one stays, idle."""
    made = runtime().patches
    while made:
        kind, name, wrapped, original = made.pop()
        if kind.__dict__.get(name) is wrapped:
            setattr(kind, name, original)


def _targets() -> list[tuple[str, str, Wrapper]]:
    return [
        ("History", "compress", _pass),
        ("History", "compress_topics", lambda original: _part(original, "topics_to_bulk")),
        ("History", "compress_bulks", lambda original: _part(original, "bulk_merge")),
        ("Topic", "compress", lambda original: _part(original, None)),
        ("Topic", "compress_large_messages", _large),
        ("Topic", "compress_attention", _attention),
    ]


def _guarded(act: Callable[..., Any], *given: Any) -> Any:
    try:
        return act(*given)
    except Exception as error:
        from .watch import swallow

        swallow("compress", error)
        return None


def _pass(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def compress(self: Any, *args: Any, **kwargs: Any) -> Any:
        passes.hold(self, 1)
        made = _guarded(passes.begin, self)
        try:
            result = await original(self, *args, **kwargs)
        except BaseException as error:
            if made is not None:
                _guarded(passes.end, made, None, error)
            raise
        finally:
            passes.hold(self, -1)
        if made is not None:
            _guarded(passes.end, made, result)
        return result

    return compress


def _part(original: Callable[..., Any], otherwise: str | None) -> Callable[..., Any]:
    @wraps(original)
    async def part(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = passes.current()
        begun = _guarded(passes.step_begun, made) if made is not None else None
        result = await original(self, *args, **kwargs)
        if made is not None and begun is not None:
            _guarded(passes.step_ended, made, begun, result, otherwise)
        return result

    return part


def _large(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def compress_large_messages(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        made = passes.current()
        if result and made is not None:
            made.kinds.append("large_message")
        return result

    return compress_large_messages


def _attention(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def compress_attention(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = passes.current()
        blank = made.blank if made is not None else 0
        result = await original(self, *args, **kwargs)
        if result and made is not None:
            made.kinds.append("attention")
            # Messages were replaced by a summary with nothing in it: their content is gone.
            made.emptied = made.emptied or made.blank > blank
        return result

    return compress_attention
