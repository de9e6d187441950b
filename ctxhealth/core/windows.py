"""Window sizes by model id, from the packaged table, with the aliases that vendors use."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

# Suffixes that do not change the window, tried from the right, one after the other.
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d|latest|default)$")
_REVISION = re.compile(r"-v\d+(?::\d+)?$|:\d+$")
_VARIANT = re.compile(r":(?:free|thinking|beta|extended|nitro|exacto)$")
_REGION = re.compile(r"^(?:us|eu|apac|global|au|jp|us-gov)\.")
_VENDOR = re.compile(r"^(?:anthropic|meta|mistral|amazon|cohere|deepseek|ai21|qwen|openai)\.")
_MILLION = "[1m]"


class ModelWindow(NamedTuple):
    """``window``: what the model can hold; ``max_input``: what the prompt may use, if less."""

    window: int
    max_input: int | None
    max_output: int | None
    key: str


@lru_cache(maxsize=1)
def _table() -> dict[str, list[Any]]:
    text = resources.files("ctxhealth.core").joinpath("data/model_windows.json").read_text("utf-8")
    models: dict[str, list[Any]] = json.loads(text)["models"]
    return models


@lru_cache(maxsize=4096)
def table_window(model: str, provider: str | None = None) -> ModelWindow | None:
    """Look ``model`` up: exact id first, then its aliases. None when the table does not know it.

    The ``[1m]`` suffix states the window itself: the agent asked for the 1,000,000 variant.
    """
    name = model.strip()
    if name.lower().endswith(_MILLION):
        plain = table_window(name[: -len(_MILLION)], provider)
        most = plain.max_output if plain else None
        return ModelWindow(1_000_000, None, most, name)
    keys = _spellings(name, provider)
    for index, key in enumerate(keys):
        row = _table().get(key)
        if row is not None:
            key = _fuller(row, keys[index + 1 :]) or key
            row = _table()[key]
            return ModelWindow(row[0], row[1], row[2], key)
    return None


def _fuller(row: list[Any], keys: list[str]) -> str | None:
    """One source knows the prompt's maximum alone: an alias that holds both says the same more."""
    if row[3] != "l":
        return None
    for key in keys:
        other = _table().get(key)
        if other is not None and other[1] == row[0]:
            return key
    return None


def _spellings(name: str, provider: str | None) -> list[str]:
    """Every id to try, most specific first; no duplicates."""
    found: dict[str, None] = {}
    if provider:
        found[f"{provider}/{name}"] = None
    for base in _bases(name):
        for variant in _without_suffixes(base):
            found[variant] = None
    return [name, *[key for key in found if key != name]]


def _bases(name: str) -> list[str]:
    """``openrouter/vendor/model`` -> itself, ``vendor/model``, ``model``; then without dots."""
    bases = [name]
    while "/" in bases[-1]:
        bases.append(bases[-1].split("/", 1)[1])
    last = _REGION.sub("", bases[-1])
    bases.append(last)
    bases.append(_VENDOR.sub("", last))
    return bases


def _without_suffixes(name: str) -> list[str]:
    names = [name]
    for pattern in (_VARIANT, _REVISION, _DATE, _REVISION, _DATE):
        shorter = pattern.sub("", names[-1])
        if shorter and shorter != names[-1]:
            names.append(shorter)
    return names
