"""Providers' errors: which mean that the context is full, what they state, and which do not."""

from __future__ import annotations

import json
import time

import pytest

from ctxhealth.core.overflow import Overflow, parse_overflow
from ctxhealth.core.overflow_phrases import POSITIVE

# (status, text, window, prompt, output, kind)
STATED = [
    (400, "prompt is too long: 213462 tokens > 200000 maximum", 200_000, 213_462, None, "prompt"),
    (
        400,
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, "
        "decrease input length or `max_tokens` and try again",
        200_000, 188_240, 21_333, "output",
    ),
    (
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "8545 tokens. Please reduce the length of the messages.",
        8_192, 8_545, None, "prompt",
    ),
    (
        400,
        "This model's maximum context length is 131072 tokens. However, you requested 131509 "
        "tokens (99509 in the messages, 32000 in the completion).",
        131_072, 99_509, 32_000, "output",
    ),
    (
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens "
        "(9000 in the messages, 1000 in the completion).",
        8_192, 9_000, 1_000, "prompt",
    ),
    (
        400,
        "This model's maximum context length is 1048576 tokens. However, you requested 1048599 "
        "tokens (1048599 in the messages, 0 in the completion).",
        1_048_576, 1_048_599, 0, "prompt",
    ),
    (
        400,
        "This endpoint's maximum context length is 256000 tokens. However, you requested about "
        "256493 tokens (194895 of text input, 10398 of tool input, 51200 in the output).",
        256_000, 205_293, 51_200, "output",
    ),
    (
        400,
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
        "290001 tokens.",
        272_000, 290_001, None, "prompt",
    ),
    (
        400,
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1_048_575, 1_196_265, None, "prompt",
    ),
    (
        400,
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        131_072, 537_812, None, "prompt",
    ),
    (
        400,
        "Prompt contains 40,000 tokens and 0 draft tokens, too large for model with 32,768 maximum "
        "context length",
        32_768, 40_000, None, "prompt",
    ),
    (
        400,
        "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received "
        "130001. Try using a shorter prompt",
        128_000, 130_001, None, "prompt",
    ),
    (400, "prompt token count of 93854 exceeds the limit of 90000", 90_000, 93_854, None, "prompt"),
    (
        400,
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 264896)",
        262_144, 264_896, None, "prompt",
    ),
    (
        400,
        "The estimated number of input and maximum output tokens (33000) exceeded this model "
        "context window limit (24000).",
        24_000, None, None, "unstated",
    ),
    (
        400,
        "The prompt is too long: 137500, model maximum context length: 131071",
        131_071, 137_500, None, "prompt",
    ),
    (
        400,
        "This model's maximum context length is 16384 tokens. However, your request has 18225 "
        "input tokens. Please reduce the length of the input messages.",
        16_384, 18_225, None, "prompt",
    ),
    (
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context "
        "length is 16384 tokens and your request has 10000 input tokens (8192 > 16384 - 10000).",
        16_384, 10_000, 8_192, "output",
    ),
    (
        400,
        "You passed 8001 input tokens and requested 1000 output tokens. However, the model's "
        "context length is only 8192 tokens, resulting in a maximum input length of 7192 tokens. "
        "Please reduce the length of the input messages.",
        8_192, 8_001, 1_000, "output",
    ),
    (
        400,
        "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
        4_096, 25_938, None, "prompt",
    ),
    (
        400,
        "The decoder prompt (length 25938) is longer than the maximum model length of 4096.",
        4_096, 25_938, None, "prompt",
    ),
    (
        400,
        "The input (140000 tokens) is longer than the model's context length (131072 tokens).",
        131_072, 140_000, None, "prompt",
    ),
    (
        400,
        "Requested token count exceeds the model's maximum context length of 131072 tokens. You "
        "requested a total of 140000 tokens: 110000 tokens from the input messages and 30000 "
        "tokens for the completion.",
        131_072, 110_000, 30_000, "output",
    ),
    (
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 "
        "`inputs` tokens and 1024 `max_new_tokens`",
        1_512, 1_000, 1_024, "output",
    ),
    (
        422,
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 1872",
        1_024, 1_872, None, "prompt",
    ),
    (
        400,
        "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing "
        "it",
        8_192, 14_429, None, "prompt",
    ),
    (
        400,
        '{"error":{"code":400,"message":"the request exceeds the available context size. try '
        'increasing the context size or enable context shift","type":"exceed_context_size_error",'
        '"n_prompt_tokens":14429,"n_ctx":8192}}',
        8_192, 14_429, None, "prompt",
    ),
    (500, "Requested tokens (2285) exceed context window of 2048", 2_048, 2_285, None, "prompt"),
    (
        400,
        "The number of tokens to keep from the initial prompt is greater than the context length "
        "(n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length",
        4_096, 13_055, None, "prompt",
    ),
    (
        400,
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is "
        "loaded with context length of only 7866 tokens, which is not enough.",
        7_866, 10_136, None, "prompt",
    ),
    (500, "prompt too long (570 tokens, max 508)", 508, 570, None, "prompt"),
    (400, "Prompt tokens (9000) exceeds context size (8192)", 8_192, 9_000, None, "prompt"),
    (413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", 8_000, None, None,
     "unstated"),
    (400, "Range of input length should be [1, 30720]", 30_720, None, None, "unstated"),
]  # fmt: skip
# Overflows that state no number at all.
BARE = [
    (400, "Your input exceeds the context window of this model. Please adjust your input."),
    (400, "Your input exceeds the model's context window."),
    (400, "Codex ran out of room in the model's context window. Start a new thread."),
    (400, "Please reduce the length of the messages or completion."),
    (400, "Input is too long for requested model."),
    (400, "Input Tokens Exceeded: Number of input tokens exceeds maximum length."),
    (400, "invalid params, context window exceeds limit (2013)"),
    (400, "Prompt exceeds max length"),
    (500, "Context size has been exceeded."),
    (400, "the request exceeds the available context size, try increasing it"),
    (None, "prompt too long; exceeded max context length by 120 tokens"),
    (400, "context length exceeded"),
    (400, "Prompt is too long"),
]
VETOED = [
    (429, "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000."),
    (
        413,
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 30601. The "
        "input or output tokens must be reduced in order to run successfully.",
    ),
    (400, "Too many tokens per day, please wait before trying again."),
    (400, "ThrottlingException: Too many tokens, please wait before trying again."),
    (400, "You exceeded your current quota, please check your plan. Prompt is too long."),
    (400, "request reached organization TPD rate limit, current: 1506556, limit: 1500000"),
    (400, "This request exceeds the limit of 30000 tokens per minute"),
    (400, "Completion has too many tokens; maximum context length is 8192 tokens"),
    (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens."),
    (400, "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens"),
    (400, "File size exceeds the limit"),
    (413, "The file is too large, prompt is too long"),
    (400, "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"),
    (413, "Request exceeds the maximum allowed number of bytes"),
    (413, "Payload Too Large"),
    (429, "prompt is too long: 213462 tokens > 200000 maximum"),
    (401, "maximum context length is 8192 tokens"),
    (529, "Overloaded"),
]
OTHER = [
    (400, ""),
    (400, None),
    (413, "413 status code (no body)"),
    (400, "Bad Request"),
    (500, "context deadline exceeded"),
    (400, "invalid context id"),
    (400, "could not read the context of the tool"),
    (400, "Invalid 'messages': array too long. Expected an array with maximum length 2048."),
    (400, "tools.0.custom.name: String should have at most 64 characters"),
    (400, "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after"),
    (400, "max_tokens must be greater than 0"),
    (404, "model not found"),
]


@pytest.mark.parametrize(("status", "text", "window", "prompt", "output", "kind"), STATED)
def test_what_a_provider_states_is_read(
    status: int, text: str, window: int | None, prompt: int | None, output: int | None, kind: str
) -> None:
    assert parse_overflow(status, None, text) == Overflow(window, prompt, output, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(("status", "text"), BARE)
def test_an_overflow_without_numbers_is_one(status: int | None, text: str) -> None:
    assert parse_overflow(status, None, text) == Overflow()


@pytest.mark.parametrize(("status", "text"), [*VETOED, *OTHER])
def test_another_reason_is_no_overflow(status: int, text: str | None) -> None:
    assert parse_overflow(status, None, text) is None


def test_the_text_of_every_provider_in_the_table_is_among_these() -> None:
    said = [" ".join(text.lower().split()) for _, text, *_ in [*STATED, *BARE]]
    missing = [phrase.by for phrase in POSITIVE if not any(map(phrase.pattern.search, said))]
    assert missing == []
    assert len(POSITIVE) >= 15


@pytest.mark.parametrize(
    "code",
    [
        "context_length_exceeded", "ContextWindowExceededError", "context_window_exceeded",
        "ContextOverflowError", "exceed_context_size_error", "model_max_prompt_tokens_exceeded",
        "tokens_limit_reached", "context-length-exceeded",
    ],
)  # fmt: skip
def test_a_code_that_names_it_decides_alone(code: str) -> None:
    assert parse_overflow(400, code, None) == Overflow()
    assert parse_overflow(None, code, "rate limit and quota") == Overflow()
    assert parse_overflow(429, code, "prompt is too long: 9 tokens > 8 maximum") == Overflow(
        8, 9, None, "prompt"
    )


@pytest.mark.parametrize(
    "code", ["invalid_request_error", "rate_limit_exceeded", "400", "", "x" * 99]
)
def test_any_other_code_leaves_it_to_the_words(code: str) -> None:
    assert parse_overflow(400, code, "something else") is None
    assert parse_overflow(400, code, "prompt is too long") == Overflow()


def test_a_whole_response_body_is_read_too() -> None:
    body = json.dumps(
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 204861 tokens > 200000 maximum",
            },
            "request_id": "req_0123456789",
        },
        indent=2,
    )
    assert parse_overflow(400, None, f"Error code: 400 - {body}") == Overflow(
        200_000, 204_861, None, "prompt"
    )


def test_a_sentence_at_the_end_of_a_long_text_is_found() -> None:
    text = "Traceback\n" + "  line\n" * 5_000 + "prompt is too long: 204861 tokens > 200000 maximum"
    assert parse_overflow(400, None, text) == Overflow(200_000, 204_861, None, "prompt")


def test_numbers_are_never_torn_out_of_longer_ones() -> None:
    text = "prompt is too long: 2048612048612048 tokens > 200000 maximum"
    read = parse_overflow(400, None, text)
    assert read is not None and read.stated_prompt is None


@pytest.mark.parametrize(
    "text",
    [
        "1" * 4_000,
        "1," * 2_000,
        "prompt " * 600,
        "requested tokens (" * 250,
        "input token count " * 250,
        "exceed the model the model " * 150,
        "exceed context limit: " + "1 + " * 900,
        "request body too large for " * 150,
        " " * 4_000,
    ],
)
def test_a_hostile_text_costs_next_to_nothing(text: str) -> None:
    begun = time.perf_counter()
    parse_overflow(400, None, text)
    assert time.perf_counter() - begun < 0.1


@pytest.mark.parametrize("part", ["1,", "prompt ", "exceed the model ", "requested tokens ("])
def test_the_time_is_linear_in_the_text(part: str) -> None:
    def took(chars: int) -> float:
        text = (part * chars)[:chars]
        runs = []
        for _ in range(7):
            begun = time.perf_counter()
            parse_overflow(400, None, text)
            runs.append(time.perf_counter() - begun)
        return min(runs)

    assert took(4_000) / took(1_000) < 8
