"""Window sizes by model id, from a table, with the aliases that vendors use.

The packaged table is ``data/model_windows.json``; a server may have a newer one of the same form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

# Suffixes that do not change the window, tried from the right, one after the other.
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d|\d\d-\d\d|latest|default)$")
_REVISION = re.compile(r"-v\d+(?::\d+)?$|:\d+$")
_VARIANT = re.compile(r":(?:free|thinking|beta|extended|nitro|exacto|floor|online)$")
# How hard a model thinks is a setting of the same model; elsewhere such a word is part of a name.
_EFFORT = re.compile(r"^((?:gpt-|o\d).*)[- ](?:minimal|low|medium|high|xhigh)$")
_THINKING = re.compile(r"^(claude-.*)-thinking$")
_REGION = re.compile(r"^(?:us|eu|apac|global|au|jp|us-gov)\.")
_VENDOR = re.compile(r"^(?:anthropic|meta|mistral|amazon|cohere|deepseek|ai21|qwen|openai)\.")
_DOTTED = re.compile(r"^claude-.*\d\.\d")
_MILLION = "[1m]"
# Each with the last characters that it can have at all.
_ENDS_OF_DATES = "0123456789t"
_SUFFIXES = (
    (_VARIANT, "egdaorn"),
    (_REVISION, "0123456789"),
    (_DATE, _ENDS_OF_DATES),
    (_REVISION, "0123456789"),
    (_DATE, _ENDS_OF_DATES),
)
_CACHED = 4_096


class ModelWindow(NamedTuple):
    """``window``: what the model can hold; ``max_input``: what the prompt may use, if less."""

    window: int
    max_input: int | None
    max_output: int | None
    key: str


# id -> [window, max input where it is smaller, max output, source: l, m or lm].
Row = list[Any]


class WindowTable:
    """One table of windows, looked up by any name that an agent may use for a model."""

    def __init__(self, models: dict[str, Row]) -> None:
        self.models = models
        # Some agents write ids in lower case that the table has in mixed case, and back.
        self._folded = {key.lower(): key for key in models}
        self.lookup = lru_cache(maxsize=_CACHED)(self.find)

    @classmethod
    def from_text(cls, text: str) -> WindowTable:
        """Read a table's JSON. Raises ValueError naming what is wrong."""
        document = json.loads(text)
        models = document.get("models") if isinstance(document, dict) else None
        if not isinstance(models, dict):
            raise ValueError("models: must be an object of model ids")
        for key, row in models.items():
            _check_row(key, row)
        return cls(models)

    def find(self, model: str, provider: str | None = None) -> ModelWindow | None:
        """Look ``model`` up: exact id first, then its aliases. None where it is not known.

        The ``[1m]`` suffix states the window itself: the agent asked for the 1,000,000 variant.
        """
        name = model.strip()
        row = self.models.get(name)
        if row is not None and row[3] != "l":
            return ModelWindow(row[0], row[1], row[2], name)
        if name.lower().endswith(_MILLION):
            plain = self.find(name[: -len(_MILLION)], provider)
            return ModelWindow(1_000_000, None, plain.max_output if plain else None, name)
        spellings = _spellings(name, provider)
        for spelling in spellings:
            key = spelling if spelling in self.models else self._folded.get(spelling.lower())
            if key is not None:
                key = self._fuller(self.models[key], spellings) or key
                row = self.models[key]
                return ModelWindow(row[0], row[1], row[2], key)
        return None

    def _fuller(self, row: Row, keys: Iterator[str]) -> str | None:
        """One source knows the prompt's maximum alone: an alias with both says the same more."""
        if row[3] != "l":
            return None
        for key in keys:
            other = self.models.get(key)
            if other is not None and other[1] == row[0]:
                return key
        return None


def _check_row(key: object, row: object) -> None:
    if not isinstance(row, list) or len(row) != 4 or not isinstance(key, str):
        raise ValueError(f"models.{key}: must be [window, max input, max output, source]")
    window, *others = row[:3]
    for value in (window, *(other for other in others if other is not None)):
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise ValueError(f"models.{key}: {value!r} is no number of tokens")


@lru_cache(maxsize=1)
def packaged_table() -> WindowTable:
    """The table of this release, read when it is first asked for."""
    path = resources.files("ctxhealth.core").joinpath("data/model_windows.json")
    return WindowTable.from_text(path.read_text("utf-8"))


def table_window(model: str, provider: str | None = None) -> ModelWindow | None:
    """Look ``model`` up in the packaged table."""
    return packaged_table().lookup(model, provider)


def _spellings(name: str, provider: str | None) -> Iterator[str]:
    """Every id to try, most specific first."""
    yield name
    if provider:
        yield f"{provider}/{name}"
    for base in _bases(name):
        yield from _without_suffixes(base)


def _bases(name: str) -> Iterator[str]:
    """``openrouter/vendor/model`` -> itself, ``vendor/model``, ``model``; then without dots."""
    yield name
    while "/" in name:
        name = name.split("/", 1)[1]
        yield name
    if "." not in name:
        return
    name = _REGION.sub("", name)
    yield name
    name = _VENDOR.sub("", name)
    yield name
    if _DOTTED.match(name):
        yield name.replace(".", "-")


def _without_suffixes(name: str) -> Iterator[str]:
    yield name
    for pattern, ends in _SUFFIXES:
        shorter = pattern.sub("", name) if name[-1:] in ends else name
        if shorter and shorter != name:
            name = shorter
            yield name
    for setting in (_EFFORT, _THINKING):
        match = setting.match(name)
        if match is not None:
            yield match.group(1)
