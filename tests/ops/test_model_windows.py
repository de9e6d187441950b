"""The table of windows made anew from its sources' files, and operators' words beside it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from ctxhealth.core.windows import WindowTable, packaged_table
from ctxhealth.ops import serving
from ctxhealth.store import judging, model_table, queries, rejudging
from tests.live.world import Agent

LITELLM = {
    "sample_spec": {"max_input_tokens": 9, "mode": "chat"},
    "gpt-x": {"max_input_tokens": 272_000, "max_output_tokens": 128_000, "mode": "responses"},
    "vendor/only-here": {"max_input_tokens": "100000", "mode": "chat"},
    "an-embedding": {"max_input_tokens": 8_192, "mode": "embedding"},
    "no-size": {"max_input_tokens": None, "mode": "chat"},
}
MODELS_DEV = {
    "openai": {
        "id": "openai",
        "models": {
            "gpt-x": {"limit": {"context": 400_000, "input": 272_000, "output": 100_000}},
            "agreed": {"limit": {"context": 64_000, "output": 8_000}},
            "nothing": {"limit": {"context": 0}},
        },
    },
    "elsewhere": {
        "models": {
            "agreed": {"limit": {"context": 64_000, "output": 8_000}},
            "served": {"limit": {"context": 32_000}},
        }
    },
    "again": {"models": {"served": {"limit": {"context": 16_000, "input": 16_000}}}},
}
ROWS = {
    "agreed": [64_000, None, 8_000, "m"],
    "again/served": [16_000, None, None, "m"],
    "elsewhere/served": [32_000, None, None, "m"],
    "gpt-x": [400_000, 272_000, 128_000, "lm"],
    "vendor/only-here": [100_000, None, None, "l"],
}


@pytest.fixture(autouse=True)
def own_folder(settings: Settings, tmp_path: Path) -> Iterator[None]:
    settings.CTXHEALTH_DATA_DIR = tmp_path / "data"
    settings.CTXHEALTH_DATA_DIR.mkdir()
    judging.forget()
    yield
    judging.forget()


def put(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), "utf-8")
    return path


def run(*args: Any) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out)
    return out.getvalue()


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    return [put(tmp_path / "prices.json", LITELLM), put(tmp_path / "api.json", MODELS_DEV)]


def test_both_sources_together_tell_window_and_prompt_apart(sources: list[Path]) -> None:
    assert model_table.read_sources(sources) == ROWS
    assert model_table.read_sources(reversed(sources)) == ROWS


def test_where_providers_differ_the_maker_s_window_is_the_model_s(tmp_path: Path) -> None:
    told = {
        "reseller": {"models": {"m": {"limit": {"context": 64_000}}}},
        "openai": {"models": {"m": {"limit": {"context": 400_000}}}},
        "another": {"models": {"m": {"limit": {"context": 400_000}}}},
    }
    rows = model_table.read_sources([put(tmp_path / "api.json", told)])
    assert rows == {"m": [400_000, None, None, "m"], "reseller/m": [64_000, None, None, "m"]}


@pytest.mark.parametrize(
    ("price", "max_input"), [((272_000, 128_000), 272_000), ((131_072, 8_192), None)]
)
def test_a_price_list_s_prompt_counts_where_the_answer_fills_the_window(
    tmp_path: Path, price: tuple[int, int], max_input: int | None
) -> None:
    told = {"azure": {"models": {"m": {"limit": {"context": 400_000}}}}}
    priced = {"m": {"max_input_tokens": price[0], "max_output_tokens": price[1], "mode": "chat"}}
    paths = [put(tmp_path / "api.json", told), put(tmp_path / "prices.json", priced)]
    assert model_table.read_sources(paths) == {"m": [400_000, max_input, price[1], "lm"]}


def test_a_list_by_plain_ids_is_read_too(tmp_path: Path) -> None:
    path = put(tmp_path / "models.json", {"solo": {"limit": {"context": 5_000, "input": 4_000}}})
    assert model_table.read_sources([path]) == {"solo": [5_000, 4_000, None, "m"]}


def test_the_text_is_one_model_a_line_and_reads_back(sources: list[Path], tmp_path: Path) -> None:
    text = model_table.table_text(ROWS)
    assert len(text.splitlines()) == len(ROWS) + 2
    assert WindowTable.from_text(text).models == ROWS
    again = tmp_path / "table.json"
    again.write_text(text, "utf-8")
    assert model_table.read_sources([again]) == ROWS


def test_the_packaged_table_is_in_that_form() -> None:
    models = packaged_table().models
    assert WindowTable.from_text(model_table.table_text(models)).models == models


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be a JSON object"),
        ("{", "Expecting property name"),
        ('{"a": {"b": 1}}', "is neither LiteLLM's nor models.dev's list"),
        ('{"models": {"x": [1, 2]}}', "models.x: must be"),
    ],
)
def test_a_file_that_is_none_of_them_is_refused_by_name(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text, "utf-8")
    with pytest.raises(CommandError, match=message) as refused:
        run("model_windows", path)
    assert str(path) in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"gone\.json"):
        run("model_windows", tmp_path / "gone.json")


def test_written_elsewhere_the_server_s_own_table_stays(
    sources: list[Path], tmp_path: Path
) -> None:
    said = run("model_windows", *sources, "--output", tmp_path / "new.json")
    assert said.startswith("5 models: ")
    assert WindowTable.from_text((tmp_path / "new.json").read_text("utf-8")).models == ROWS
    assert judging.table() is packaged_table()


def test_stored_chats_are_judged_by_the_new_table(robot: Agent, tmp_path: Path) -> None:
    pk = robot.chat("c1", 60_000, model="brand-new-model", window=None)
    row = queries.chat_get(pk)
    assert row is not None and row.summary.window.value is None
    source = {"brand-new-model": {"max_input_tokens": 128_000, "mode": "chat"}}
    said = run("model_windows", put(tmp_path / "prices.json", source))
    assert "1 chats were judged again" in said
    row = queries.chat_get(pk)
    assert row is not None
    assert (row.summary.window.value, row.summary.window.source.value) == (128_000, "table")
    assert "agree" in run("verify")


def test_a_damaged_table_of_the_server_is_passed_over() -> None:
    judging.table_path().write_text("{", "utf-8")
    assert judging.table() is packaged_table()


def test_beside_a_running_server_the_table_is_put_and_the_server_judges(
    transactional_db: None, sources: list[Path]
) -> None:
    with serving.data_dir_held():
        said = run("model_windows", *sources)
    assert "The running server judges its chats again now." in said
    assert judging.table_path().exists()
    assert rejudging.behind()


def test_an_operator_states_lists_and_ends_a_window(robot: Agent) -> None:
    pk = robot.chat("c1", 60_000, model="m-1", window=200_000)
    said = run("window_override", "set", "m-*", "90000", "--max-input", "80000", "--note", "why")
    assert said == "1 chats were judged again.\n"
    row = queries.chat_get(pk)
    assert row is not None and row.summary.budget == 80_000
    number = queries.window_overrides()[0].id
    assert run("window_override", "list") == f"{number}: m-* 90,000, max input 80,000, why\n"
    run("window_override", "end", str(number))
    row = queries.chat_get(pk)
    assert row is not None and row.summary.window.value == 200_000
    with pytest.raises(CommandError, match=f"No override {number} is in force"):
        run("window_override", "end", str(number))


def test_a_window_that_makes_no_sense_is_refused(transactional_db: None) -> None:
    with pytest.raises(CommandError, match=r"^window: must be above 0"):
        run("window_override", "set", "m", "0")
