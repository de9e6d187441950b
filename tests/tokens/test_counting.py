"""Token counts: offline, exact where the vocabulary is known, never a crash."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxhealth import tokens
from ctxhealth.tokens import counting, vocabularies
from ctxhealth.tokens.pool import CountingPool

tiktoken = pytest.importorskip("tiktoken")

PARTS = [
    "carrot",
    " bed",
    "\n",
    "\n\n",
    "  ",
    "'s",
    "3",
    "é",
    "根",
    ".",
    "/",
    "\t",
    "A",
    "\r\n",
    "🥕",
]
TEXT = "The garden has 3 beds; carrots, onions and leeks grow well.\n"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken.load

    def refuse(path: str) -> bytes:
        raise AssertionError(f"{path} would be downloaded")

    monkeypatch.setattr(tiktoken.load, "read_file", refuse)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabularies, "_loaded", {})
    monkeypatch.setattr(counting, "_cache", counting._Cache())
    from tiktoken import registry

    monkeypatch.setattr(registry, "ENCODINGS", {})


def test_both_vocabularies_load_offline_and_leave_no_trace(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    for name in vocabularies.NAMES:
        assert vocabularies.encoding(name).name == name
    assert "TIKTOKEN_CACHE_DIR" not in os.environ
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/elsewhere")
    monkeypatch.setattr(vocabularies, "_loaded", {})
    vocabularies.encoding("o200k_base")
    assert os.environ["TIKTOKEN_CACHE_DIR"] == "/elsewhere"


@pytest.mark.parametrize(
    ("model", "name", "exact"),
    [
        ("gpt-4o-2024-08-06", "o200k_base", True),
        ("openai/gpt-5", "o200k_base", True),
        ("gpt-4-0613", "cl100k_base", True),
        ("gpt-oss-120b:free", "o200k_base", True),
        ("claude-sonnet-5", "o200k_base", False),
        ("text-davinci-003", "o200k_base", False),
        (None, "o200k_base", False),
    ],
)
def test_a_count_is_exact_where_the_models_vocabulary_is_known(
    model: str | None, name: str, exact: bool
) -> None:
    found = tokens.count(TEXT, model)
    assert found == (len(vocabularies.encoding(name).encode_ordinary(TEXT)), exact)


def test_the_empty_text_has_no_tokens() -> None:
    assert tokens.count("") == (0, True)
    assert tokens.estimate("") == 0


def test_special_tokens_in_a_text_count_as_text() -> None:
    assert tokens.count("<|endoftext|>", "gpt-4o").tokens > 1


@pytest.mark.parametrize("name", vocabularies.NAMES)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=60))
def test_counting_in_pieces_gives_the_count_of_the_whole(name: str, parts: list[str]) -> None:
    text, vocabulary = "".join(parts), vocabularies.encoding(name)
    for at in range(2, len(text) - 1):
        cut, clean = counting._cut(text + "  ", at) if at > counting._LOOK_BACK else _near(text, at)
        if clean:
            whole = len(vocabulary.encode_ordinary(text))
            halves = [len(vocabulary.encode_ordinary(half)) for half in (text[:cut], text[cut:])]
            assert sum(halves) == whole


def _near(text: str, at: int) -> tuple[int, bool]:
    """What ``_cut`` says of the single place ``at``."""
    padded = "." * counting._LOOK_BACK + text
    cut, clean = counting._cut(padded, at + counting._LOOK_BACK)
    return cut - counting._LOOK_BACK, clean and cut >= counting._LOOK_BACK


def test_a_long_text_is_counted_in_pieces_and_still_exactly() -> None:
    text = TEXT * 4_000
    assert len(text) > 4 * counting.PIECE
    whole = len(vocabularies.encoding("o200k_base").encode_ordinary(text))
    assert tokens.count(text, "gpt-4o") == (whole, True)


@pytest.mark.parametrize("text", [" " * 1_500_000, "\t" * 1_500_000, "a" * 1_000_000,
                                  "\x00" * 500_000, "=" * 500_000])  # fmt: skip
def test_a_million_equal_characters_neither_panic_nor_take_long(text: str) -> None:
    tokens.count("warm", "gpt-4o")
    started = time.process_time()
    found = tokens.count(text, "gpt-4o")
    assert time.process_time() - started < 5
    assert 0 < found.tokens < len(text)
    assert not found.exact


def test_a_panic_becomes_an_estimate(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    class Panic(BaseException):
        pass

    class Broken:
        def encode_ordinary(self, text: str) -> Any:
            raise Panic

    monkeypatch.setattr(counting, "encoding", lambda name: Broken())
    assert tokens.count(TEXT, "gpt-4o") == (tokens.estimate(TEXT), False)


def test_without_any_vocabulary_there_is_still_an_estimate(
    monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    monkeypatch.setattr(counting, "encoding", lambda name: None)
    found = tokens.count(TEXT * 10, "gpt-4o")
    assert not found.exact
    assert 100 < found.tokens < 300


def test_beyond_the_most_the_rest_is_taken_to_be_like_the_beginning(
    monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    monkeypatch.setattr(counting, "MOST", len(TEXT) * 10)
    one = tokens.count(TEXT, "gpt-4o").tokens
    found = tokens.count(TEXT * 40, "gpt-4o")
    assert not found.exact
    assert abs(found.tokens - 40 * one) <= 40


@pytest.mark.parametrize("text", ["\ud800", "根菜" * 50, "é" * 100, "🥕" * 100, "\u200f" * 9])
def test_odd_text_is_counted_and_the_estimate_is_near(text: str) -> None:
    found = tokens.count(text, "gpt-4o")
    assert found.tokens >= 1
    assert tokens.estimate(text) <= 4 * found.tokens


def test_counting_beside_a_loop_gives_the_same_and_the_estimate_when_it_takes_too_long() -> None:
    async def run() -> None:
        pool = CountingPool(seconds=30)
        assert await pool.count(TEXT, "gpt-4o") == tokens.count(TEXT, "gpt-4o")
        assert await pool.count("") == (0, True)
        hasty = CountingPool(seconds=0.0001)
        text = "unseen " * 150_000
        assert await hasty.count(text, "gpt-4o") == (tokens.estimate(text), False)
        pool.close()
        hasty.close()

    asyncio.run(run())


def test_more_texts_than_may_wait_get_the_estimate_at_once() -> None:
    async def run() -> list[tokens.Count]:
        pool = CountingPool(seconds=30)
        texts = [f"{number} " + "bed " * 5_000 for number in range(200)]
        found = await asyncio.gather(*(pool.count(text, "gpt-4o") for text in texts))
        pool.close()
        return found

    exact = [found.exact for found in asyncio.run(run())]
    assert 0 < exact.count(False) < 200


def test_many_texts_are_counted_in_one_turn_each_for_its_model() -> None:
    async def run() -> list[tokens.Count]:
        pool = CountingPool(seconds=30)
        found = await pool.all([(TEXT, "gpt-4o"), ("", None), (TEXT, "claude-sonnet-4-5")])
        pool.close()
        return found

    own, empty, other = asyncio.run(run())
    assert own == tokens.count(TEXT, "gpt-4o") and own.exact
    assert empty == (0, True)
    assert other == tokens.count(TEXT, "claude-sonnet-4-5") and not other.exact


def test_of_many_texts_what_is_not_counted_in_time_is_estimated() -> None:
    async def run() -> list[tokens.Count]:
        pool = CountingPool(seconds=0.0)
        found = await pool.all([(TEXT, "gpt-4o"), (TEXT * 2, "gpt-4o")])
        pool.close()
        return found

    assert asyncio.run(run()) == [(tokens.estimate(TEXT * n), False) for n in (1, 2)]
