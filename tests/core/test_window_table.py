"""The table of windows: its aliases, what it refuses, and what operators say above it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

import pytest

from ctxhealth.core.rules import Rules, WindowOverride
from ctxhealth.core.windows import WindowTable, packaged_table

from .story import Story

ALIASES = [
    ("claude-sonnet-4-5", None, 200_000, None),
    ("claude-sonnet-4-5-20250929", None, 200_000, None),
    ("Claude-Sonnet-4-5", None, 200_000, None),
    ("claude-sonnet-4.5", None, 200_000, None),
    ("anthropic/claude-sonnet-4.5", None, 200_000, None),
    ("claude-opus-4-6-thinking", None, 1_000_000, None),
    ("claude-sonnet-4-5[1m]", None, 1_000_000, None),
    ("claude-sonnet-4-5[1M]", None, 1_000_000, None),
    ("claude-opus-4-5@20251101", None, 200_000, None),
    ("vertex_ai/claude-opus-4-5@20251101", None, 200_000, None),
    ("claude-haiku-4-5@latest", None, 200_000, None),
    ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", None, 200_000, None),
    ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", None, 200_000, None),
    ("global.anthropic.claude-opus-4-6-20990101-v1:0", None, 1_000_000, None),
    ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", None, 200_000, None),
    ("gpt-5", None, 400_000, 272_000),
    ("GPT-5", None, 400_000, 272_000),
    ("gpt-5-2025-08-07", "azure", 400_000, 272_000),
    ("azure/gpt-5", None, 400_000, 272_000),
    ("somebody/gpt-5", None, 400_000, 272_000),
    ("gpt-5:free", None, 400_000, 272_000),
    ("gpt-5-codex-high", None, 400_000, 272_000),
    ("gpt-5.5 high", None, 1_050_000, 922_000),
    ("minimax-m2.5", None, 204_800, None),
    ("z-ai/glm-4.6:free", None, 204_800, None),
    ("grok-4.20", "xai", 1_000_000, None),
    ("llama-3.3-70b-versatile", "groq", 131_072, None),
]  # fmt: skip


@pytest.mark.parametrize(("model", "provider", "window", "max_input"), ALIASES)
def test_a_model_is_known_by_the_names_that_agents_use(
    model: str, provider: str | None, window: int, max_input: int | None
) -> None:
    found = packaged_table().lookup(model, provider)
    assert found is not None
    assert (found.window, found.max_input) == (window, max_input)


def test_every_name_that_the_page_of_models_gives_is_known() -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
    table = text.split("| written | looked up |")[1].split("\n\n")[0]
    names = re.findall(r"`([^`]+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))
    whole = [name for name in names if not re.search(r"^\.|^:|\.$|\.\.\.|vendor/", name)]
    assert len(whole) >= 8
    assert [name for name in whole if packaged_table().lookup(name) is None] == []


@pytest.mark.parametrize(
    "model", ["", "sonnet", "nobody-knows-this", "qwen3:4b", "mistral-high", "gpt", "claude", "/"]
)
def test_what_it_does_not_know_is_never_guessed(model: str) -> None:
    assert packaged_table().lookup(model) is None


def test_the_exact_id_comes_before_a_provider_s_row_and_that_before_aliases() -> None:
    table = WindowTable(
        {
            "m": [100, None, None, "l"],
            "p/m": [50, None, None, "l"],
            "p/x:free": [9, None, None, "l"],
        }
    )
    found = [
        table.find(name, provider)
        for name, provider in (("m", "p"), ("p/m", None), ("x:free", "p"))
    ]
    assert [window.window for window in found if window is not None] == [100, 50, 9]


def test_every_row_has_a_source_with_a_licence() -> None:
    sources = {row[3] for row in packaged_table().models.values()}
    assert sources == {"l", "m", "lm"}
    assert len(packaged_table().models) > 4_000


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "models: must be an object"),
        ({}, "models: must be an object"),
        ({"models": {"x": [1, None, None]}}, "models.x: must be"),
        ({"models": {"x": {"window": 5}}}, "models.x: must be"),
        ({"models": {"x": [0, None, None, "l"]}}, "models.x: 0 is no number"),
        ({"models": {"x": ["9", None, None, "l"]}}, "models.x: '9' is no number"),
        ({"models": {"x": [True, None, None, "l"]}}, "models.x: True is no number"),
        ({"models": {"x": [9, -1, None, "l"]}}, "models.x: -1 is no number"),
    ],
)
def test_a_damaged_table_names_the_row(document: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WindowTable.from_text(json.dumps(document))


def test_a_look_up_takes_less_than_20_microseconds() -> None:
    table = WindowTable(packaged_table().models)
    taken = []
    for name, provider, *_ in ALIASES * 5:
        begun = perf_counter_ns()
        table.lookup(name, provider)
        taken.append(perf_counter_ns() - begun)
    assert median(taken) < 20_000


class TestOverrides:
    @pytest.mark.parametrize(
        ("pattern", "provider", "fits"),
        [
            ("gpt-5", None, True),
            ("GPT-5", None, True),
            ("gpt-*", None, True),
            ("*", None, True),
            ("gpt-5", "OpenAI", True),
            ("gpt-5", "azure", False),
            ("gpt", None, False),
            ("claude-*", None, False),
        ],
    )
    def test_a_pattern_names_models_and_a_provider(
        self, pattern: str, provider: str | None, fits: bool
    ) -> None:
        override = WindowOverride(model=pattern, provider=provider, window=300_000)
        assert override.fits("gpt-5", "openai") is fits

    def test_only_a_bare_star_stands_for_a_model_that_nobody_names(self) -> None:
        assert WindowOverride(model="*", window=1).fits(None, None)
        assert not WindowOverride(model="g*", window=1).fits(None, None)
        rules = Rules(overrides=(WindowOverride(model="*", window=300_000),))
        story = Story(rules=rules).say("chat.opened").reply(30_000)
        assert (story.row.window.value, story.row.window.source) == (300_000, "operator")

    def test_the_first_that_fits_counts(self) -> None:
        rules = Rules(
            overrides=(
                WindowOverride(model="gpt-5", window=300_000),
                WindowOverride(model="gpt-*", window=100_000),
            )
        )
        assert Story(rules=rules).say("chat.opened", model="gpt-5").row.window.value == 300_000
        assert Story(rules=rules).say("chat.opened", model="gpt-5.5").row.window.value == 100_000

    def test_it_may_state_the_largest_prompt_too(self) -> None:
        rules = Rules(overrides=(WindowOverride(model="*", window=300_000, max_input=250_000),))
        story = Story(rules=rules).say("chat.opened", model="m")
        assert story.row.budget == 250_000
        story.say("chat.updated", max_input=90_000)
        assert story.row.budget == 250_000

    def test_it_settles_a_dispute_unless_evidence_speaks_against_it(self) -> None:
        rules = Rules(overrides=(WindowOverride(model="*", window=100_000),))
        story = Story(rules=rules).say("chat.opened", model="gpt-5", window=900_000)
        assert "window_conflict" not in story.codes()
        story.fails("overflow", stated_window=64_000, stated_prompt=70_000)
        assert story.row.window.value == 100_000
        assert story.severity("window_conflict") == "warning"
        assert "operator 100,000, evidence 64,000" in story.finding("window_conflict").sentence
