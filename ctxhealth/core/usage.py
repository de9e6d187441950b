"""Usage as billed -> the prompt of one request, by the dialect that the sender names."""

from __future__ import annotations

from typing import NamedTuple

from ctxhealth.wire.parts import Usage, UsageIteration


class Counted(NamedTuple):
    """``prompt`` None: usage says nothing about it. ``doubt`` says why it cannot be right.

    ``without_cache`` is the input alone where it is large enough to hold the cached tokens
    already, as usage of another dialect would: what the prompt is if they were added twice.
    """

    prompt: int | None
    output: int | None
    doubt: str | None = None
    without_cache: int | None = None


def count_usage(usage: Usage | None) -> Counted:
    """Normalise one usage. All-zero usage is no reading; zero parts with a total is an estimate."""
    if usage is None:
        return Counted(None, None)
    # OpenAI, Codex, Gemini, llama.cpp and OpenTelemetry count cached tokens inside input.
    prompt = _anthropic(usage) if usage.dialect == "anthropic" else usage.input
    if not prompt:
        return _without_input(usage)
    return Counted(prompt, usage.output, None, _without_cache(usage))


def _anthropic(usage: Usage) -> int | None:
    """Input, cache reads and cache writes are disjoint; the last message pass is the load."""
    if usage.iterations:
        for iteration in reversed(usage.iterations):
            if iteration.type == "message":
                return _pass_load(iteration)
    if usage.input is None:
        return None
    return usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)


def _without_cache(usage: Usage) -> int | None:
    cached = (usage.cache_read or 0) + (usage.cache_write or 0)
    if usage.dialect != "anthropic" or usage.iterations or not cached or usage.input is None:
        return None
    return usage.input if usage.input >= cached else None


def _pass_load(iteration: UsageIteration) -> int:
    return iteration.input + iteration.cache_read + iteration.cache_write


def _without_input(usage: Usage) -> Counted:
    if usage.total and usage.input == 0 and not usage.output:
        return Counted(usage.total, None, "its parts are all 0, the total is an estimate")
    return Counted(None, usage.output or None)
