"""How providers say that a request does not fit the context, as tables of patterns.

Every pattern is matched against one lower-case line without line breaks and has bounded gaps and
bounded numbers only, so that the time is linear in the text whatever the text is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# A count with or without thousands separators, never the middle of a longer number.
N = r"(?<![\d.,])(\d{1,3}(?:,\d{3}){1,4}|\d{1,12})(?![\d]|[.,]\d)"


class Phrase(NamedTuple):
    """``by`` names whose words these are; ``pattern`` finds them."""

    by: str
    pattern: re.Pattern[str]


def _phrase(by: str, pattern: str) -> Phrase:
    return Phrase(by, re.compile(pattern.replace("#", N)))


POSITIVE: tuple[Phrase, ...] = (
    _phrase("Anthropic", r"prompt is too long"),
    _phrase("Anthropic, output", r"input length and .?max_tokens.? exceed context limit"),
    _phrase("OpenAI", r"maximum context length (?:is|of) #"),
    _phrase("OpenAI Responses", r"exceeds? (?:the|this model's|the model's) context window"),
    _phrase("OpenAI, prompt limit", r"input tokens exceed the configured limit"),
    _phrase("Codex", r"ran out of room in the model's context window"),
    _phrase("Gemini", r"input token count.{0,30} exceeds the maximum number of"),
    _phrase("xAI", r"maximum prompt length is #"),
    _phrase("Groq", r"reduce the length of the (?:input )?messages"),
    _phrase("Mistral", r"too large for model with # maximum context length"),
    _phrase("Bedrock", r"input is too long for (?:the )?requested model"),
    _phrase("Bedrock Nova", r"number of input tokens exceeds maximum length"),
    _phrase("Cohere", r"number of tokens in the prompt cannot exceed #"),
    _phrase("GitHub Copilot", r"prompt token count of # exceeds the limit of #"),
    _phrase("GitHub Models", r"request body too large for .{1,80} max size: # tokens"),
    _phrase("Moonshot", r"exceeded model token limit"),
    _phrase("MiniMax", r"context window exceeds limit"),
    _phrase("Zhipu", r"prompt exceeds max length"),
    _phrase("DashScope", r"range of input length should be \[\d{1,12}, ?\d{1,12}\]"),
    _phrase("Cloudflare", r"exceeded this model context window limit"),
    _phrase("Fireworks", r"prompt is too long: #, model maximum context length: #"),
    _phrase(
        "vLLM", r"prompt .{0,40}is (?:too long to fit into|longer than) the (?:maximum )?model"
    ),
    _phrase("SGLang", r"input \(# tokens\) is longer than the model's context length"),
    _phrase("Text Generation Inference", r"inputs.? tokens \+ .?max_new_tokens.? must be <= ?#"),
    _phrase("Text Generation Inference, prompt", r"inputs.? must have less than # tokens"),
    _phrase("llama.cpp", r"exceeds? the available context size"),
    _phrase("llama-cpp-python", r"requested tokens (?:\(#\) )?exceed context window of #"),
    _phrase("LM Studio", r"tokens to keep from the initial prompt is greater than the context"),
    _phrase("LM Studio, older", r"loaded with context length of only # tokens"),
    _phrase("LM Studio, server", r"context size has been exceeded"),
    _phrase("Ollama", r"prompt too long; exceeded max(?:imum)? context length"),
    _phrase("a small server", r"prompt too long \(# tokens, max #\)"),
    _phrase("a small server, sizes", r"prompt tokens \(#\) exceeds? context size \(#\)"),
    _phrase("several", r"context[ _](?:length|window|size)[ _](?:limit )?exceed(?:ed|s|ing)"),
    _phrase(
        "several",
        r"exceed(?:ed|s|ing)? (?:the |model |its )*(?:maximum |max )?context (?:length|limit|size)",
    ),
)

# The limit that the text states: of the window, or of the prompt alone.
LIMIT: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern.replace("#", N))
    for pattern in (
        r"maximum context length(?: is| of|: )? ?(?:only )?#",
        r"model's context length is (?:only )?#",
        r"maximum prompt length is #",
        r"maximum model length of #",
        r"too large for model with # maximum context length",
        r"# tokens > # maximum",
        r"exceed context limit: # \+ # > #",
        r"maximum number of (?:input )?tokens allowed(?: is)? \(?#",
        r"exceeds the maximum number of tokens allowed \(#\)",
        r"configured limit of #",
        r"exceeds the limit of #",
        r"cannot exceed #",
        r"max size: # tokens",
        r"model token limit: #",
        r"input length should be \[\d{1,12}, ?#\]",
        r"context window limit \(#\)",
        r"context window of #",
        r"context length \(?(?:of only )?#",
        r"context size \(#(?: tokens)?\)",
        r"must be <= ?#",
        r"must have less than # tokens",
        r"n_ctx.{0,3}: ?#",
        r"\(# tokens, max #\)",
    )
)

# The prompt that the text states. The last group counts.
PROMPT: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern.replace("#", N))
    for pattern in (
        r"prompt is too long: #",
        r"exceed context limit: #",
        r"messages resulted in #",
        r"input token count \(?#",
        r"request contains #",
        r"request has # input tokens",
        r"passed # input tokens",
        r"prompt contains #",
        r"prompt token count of #",
        r"\(total length #\)",
        r"prompt \(length #\)",
        r"input \(# tokens\)",
        r"request \(# tokens\)",
        r"requested tokens \(#\)",
        r"prompt tokens \(#\)",
        r"prompt too long \(#",
        r"given: # .?inputs.? tokens",
        r"given: #",
        r"received #",
        r"\(requested: #\)",
        r"n_keep: ?#",
        r"keep the first # tokens",
        r"n_prompt_tokens.{0,3}: ?#",
        r"requested (?:about )?# tokens\b(?! \()",
    )
)

# The output that the request asked for beside its prompt.
OUTPUT: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern.replace("#", N))
    for pattern in (
        r"exceed context limit: (?:[\d,]{1,15}) \+ #",
        r"requested # output tokens",
        r"is too large: #\.",
        r"# .?max_new_tokens",
    )
)

# A sum told in its parts: 122,942 in the messages, 8,192 in the completion.
PART = re.compile(
    N + r"(?: tokens)? (?:of|in|for|from)(?: the| your)? "
    r"(text input|tool input|image input|audio input|input messages|messages|functions|tools"
    r"|prompt|completion|output)\b"
)
OUTPUT_PARTS = frozenset({"completion", "output"})

# Codes that mean an overflow whatever the words beside them say; compared without punctuation.
CODES = frozenset(
    {
        "contextlengthexceeded", "contextlengthexceedederror", "contextwindowexceeded",
        "contextwindowexceedederror", "contextwindowoverflow", "contextoverflow",
        "contextoverflowerror", "contextexceeded", "contextlimitexceeded",
        "exceedcontextsizeerror", "modelcontextwindowexceeded", "modelmaxprompttokensexceeded",
        "prompttoolong", "inputtoolong", "tokenslimitreached",
    }
)  # fmt: skip
CODE_IN_TEXT = re.compile(
    r"\b(?:context_(?:length|window|limit)_exceeded|context_exceeded|exceed_context_size_error"
    r"|model_context_window_exceeded|model_max_prompt_tokens_exceeded|tokens_limit_reached)\b"
)

# Other reasons that speak of tokens, sizes and limits too.
VETO = re.compile(
    r"rate[ _-]?limit|too many requests|throttl|quota|billing|insufficient|credit balance"
    r"|\b(?:tokens?|requests?|images?) per (?:second|sec|minute|min|hour|day|week|month)\b"
    r"|\b(?:tpm|rpm|tpd|rpd)\b|overloaded|retry after|please wait"
    r"|completion has too many tokens|at most [\d,]{1,15} (?:completion|output) tokens"
    r"|maximum allowed number of output tokens"
    r"|\bfiles? (?:size |is |are )?(?:exceed|too|larger)|\bfile size\b|image exceeds|image size"
    r"|attachment|maximum allowed number of bytes|[\d,]{1,15} bytes|payload too large"
)
# These answer for something else than the prompt's size, whatever their text says.
OTHER_STATUS = frozenset({401, 402, 403, 404, 408, 429})
