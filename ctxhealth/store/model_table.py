"""A table of model windows made from the files of its public sources.

Two sources are known by their shape: LiteLLM's ``model_prices_and_context_window.json`` (what a
prompt may use) and models.dev's ``api.json`` or ``models.json`` (what the model holds, and what a
prompt may use of that). A table of our own form is taken as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ctxhealth.core.windows import Row, WindowTable

ABOUT = (
    "Model context windows in tokens: id -> [window, max input where it is smaller, max output, "
    "source]. l: LiteLLM model_prices_and_context_window, m: models.dev."
)
LICENCE = (
    "LiteLLM: MIT License, Copyright (c) 2023 Berri AI (the data file lies outside its enterprise "
    "folder). models.dev: MIT License, Copyright (c) 2025 models.dev. The permission notice of "
    "both is in LICENCES.md beside the packaged table."
)
# Providers that serve the models they make: where others differ, theirs is the model's window.
_MAKERS = (
    "openai", "anthropic", "google", "deepseek", "xai", "mistral", "moonshotai", "zai", "zhipuai",
    "minimax", "alibaba", "cohere", "llama", "stepfun", "xiaomi", "inception", "amazon-bedrock",
)  # fmt: skip
# LiteLLM lists what else it prices; only these are models to chat with.
_MODES = frozenset({"chat", "completion", "responses"})


class Limits(NamedTuple):
    """What one source says of one model; None where it does not."""

    window: int | None
    max_input: int | None
    max_output: int | None


class Change(NamedTuple):
    added: int
    removed: int
    changed: int
    models: int


def read_sources(paths: Iterable[Path]) -> dict[str, Row]:
    """Rows of all files together. Raises ValueError naming the file and the reason."""
    texts = []
    for path in paths:
        try:
            texts.append((str(path), path.read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error
    return read_texts(texts)


def read_texts(texts: Iterable[tuple[str, str]]) -> dict[str, Row]:
    """The same of (name, content). Raises ValueError naming the file and the reason."""
    prices: dict[str, Limits] = {}
    windows: dict[str, Limits] = {}
    rows: dict[str, Row] = {}
    for name, text in texts:
        try:
            _sort_in(json.loads(text), prices, windows, rows)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}: {error}") from error
    for key in sorted({*prices, *windows}):
        row = _row(prices.get(key), windows.get(key))
        if row is not None:
            rows[key] = row
    if not rows:
        raise ValueError("no model with a window was found")
    return rows


def table_text(rows: dict[str, Row]) -> str:
    """The table as it is stored: one model a line, so that a refresh shows as its changes."""
    head = f'{{"about":{json.dumps(ABOUT)},"licence":{json.dumps(LICENCE)},"models":{{\n'
    lines = (
        f"{json.dumps(key)}:{json.dumps(rows[key], separators=(',', ':'))}" for key in sorted(rows)
    )
    text = head + ",\n".join(lines) + "\n}}\n"
    WindowTable.from_text(text)
    return text


def difference(old: dict[str, Row], new: dict[str, Row]) -> Change:
    changed = sum(old[key][:3] != row[:3] for key, row in new.items() if key in old)
    return Change(len(new.keys() - old.keys()), len(old.keys() - new.keys()), changed, len(new))


def _sort_in(
    document: Any, prices: dict[str, Limits], windows: dict[str, Limits], rows: dict[str, Row]
) -> None:
    if not isinstance(document, dict):
        raise ValueError("must be a JSON object")
    models = document.get("models")
    if isinstance(models, dict) and any(isinstance(row, list) for row in models.values()):
        rows.update(WindowTable.from_text(json.dumps(document)).models)
        return
    found = dict(_litellm(document))
    if found:
        prices.update(found)
        return
    found = _models_dev(document)
    if not found:
        raise ValueError("is neither LiteLLM's nor models.dev's list, nor a table of this form")
    windows.update(found)


def _litellm(document: dict[str, Any]) -> Iterator[tuple[str, Limits]]:
    for key, entry in document.items():
        if not isinstance(entry, dict) or "max_input_tokens" not in entry or key == "sample_spec":
            continue
        limit = _size(entry["max_input_tokens"])
        if limit is not None and entry.get("mode", "chat") in _MODES:
            yield key, Limits(None, limit, _size(entry.get("max_output_tokens")))


def _models_dev(document: dict[str, Any]) -> dict[str, Limits]:
    """Models by plain id as their makers serve them, and by provider where one differs."""
    by_id: dict[str, dict[str, Limits]] = {}
    for provider, entry in document.items():
        if not isinstance(entry, dict):
            continue
        models = entry.get("models")
        listed = models if isinstance(models, dict) else {provider: entry}
        for key, model in listed.items():
            limits = _limit(model)
            if limits is not None:
                by_id.setdefault(key, {})["" if models is None else provider] = limits
    found: dict[str, Limits] = {}
    for key, told in by_id.items():
        plain = _plain(told)
        if plain is not None:
            found[key] = plain
        found.update({f"{name}/{key}": limits for name, limits in told.items() if limits != plain})
    return found


def _plain(told: dict[str, Limits]) -> Limits | None:
    """What holds for the id alone: the maker's word, else what all providers agree on."""
    for maker in ("", *_MAKERS):
        if maker in told:
            return told[maker]
    return next(iter(told.values())) if len(set(told.values())) == 1 else None


def _limit(model: Any) -> Limits | None:
    limit = model.get("limit") if isinstance(model, dict) else None
    if not isinstance(limit, dict):
        return None
    window = _size(limit.get("context"))
    if window is None:
        return None
    return Limits(window, _size(limit.get("input")), _size(limit.get("output")))


def _row(price: Limits | None, held: Limits | None) -> Row | None:
    """models.dev tells window and prompt apart; LiteLLM's number is the prompt's, taken for both.

    Where both speak of a model the window is models.dev's; the answer's size is LiteLLM's.
    """
    if held is None or held.window is None:
        if price is None:
            return None
        return [price.max_input, None, price.max_output, "l"]
    output = price.max_output if price is not None and price.max_output else held.max_output
    source = "m" if price is None else "lm"
    return [held.window, _max_input(price, held.window, held.max_input), output, source]


def _max_input(price: Limits | None, window: int, told: int | None) -> int | None:
    """The prompt's share, where it is less than the window.

    LiteLLM's number is one where the answer's size is all that is missing to the window; otherwise
    it may be an older window of the model.
    """
    if told is not None:
        return told if told < window else None
    if price is None or price.max_input is None or price.max_output is None:
        return None
    return price.max_input if price.max_input + price.max_output == window else None


def _size(value: Any) -> int | None:
    """A number of tokens; sources write some as texts or as 1e6."""
    if isinstance(value, bool):
        return None
    try:
        number = int(float(value))
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number > 0 else None
