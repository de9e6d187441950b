"""What is read of the agent's exceptions, usages, messages and settings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ctxhealth.agents.agent_zero.plugin.helpers.contents import content_of
from ctxhealth.agents.agent_zero.plugin.helpers.failures import failure_of
from ctxhealth.agents.agent_zero.plugin.helpers.settings import BadSettings, read
from ctxhealth.agents.agent_zero.plugin.helpers.usage import normalised


def raised(name: str, text: str, status: int | None = None) -> Exception:
    kind = type(name, (Exception,), {})
    error: Exception = kind(text)
    if status is not None:
        error.status_code = status  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (raised("APIError", "You have no credits left.", 402), "quota"),
        (raised("RateLimitError", "insufficient_quota: check your plan", 429), "quota"),
        (raised("RateLimitError", "slow down", 429), "rate_limit"),
        (raised("ContextWindowExceededError", "too large", 400), "overflow"),
        (raised("BadRequestError", "maximum context length is 8000 tokens", 400), "overflow"),
        (raised("BadRequestError", "unknown field", 400), "invalid"),
        (raised("AuthenticationError", "no such key", 401), "auth"),
        (raised("InternalServerError", "oops", 503), "provider"),
        (raised("Timeout", "after 180 s", 408), "timeout"),
        (raised("APIConnectionError", "refused", 500), "network"),
        (raised("APIError", "request entity too large", 413), "too_large"),
        (raised("InterventionException", "the user wrote"), "cancelled"),
        (raised("KeyError", "whatever"), "other"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_exception_is_named_by_its_class_status_and_text(error: Exception, word: str) -> None:
    assert failure_of(error).error == word


def test_both_spellings_of_usage_are_read_and_nothing_is_unknown_not_zero() -> None:
    new = {
        "input_tokens": 90, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 40},
    }  # fmt: skip
    assert normalised(new) == {"dialect": "openai", "input": 90, "output": 7, "cache_read": 40}
    old = SimpleNamespace(
        prompt_tokens=90, completion_tokens=7, total_tokens=97, prompt_tokens_details=None
    )
    assert normalised(old) == {"dialect": "openai", "input": 90, "output": 7, "total": 97}
    assert normalised({}) is normalised(None) is normalised({"input_tokens": 0}) is None


@pytest.mark.parametrize(
    ("ai", "content", "role", "kind"),
    [
        (False, {"user_message": "hi"}, "user", "text"),
        (False, {"user_intervention": "stop"}, "user", "text"),
        (False, {"system_warning": "no"}, "system", "text"),
        (False, {"tool_name": "x", "tool_result": "y"}, "tool", "tool_result"),
        (False, {"messages_summary": "they spoke"}, "system", "summary"),
        (False, {"raw_content": [{"type": "image_url"}]}, "user", "image"),
        (False, "plain words", "user", "text"),
        (True, '{"tool_name": "response", "tool_args": {}}', "assistant", "text"),
        (True, '{"tool_name": "search", "tool_args": {}}', "assistant", "tool_call"),
        (True, "no JSON at all", "assistant", "text"),
    ],
)
def test_a_message_is_what_its_content_says(ai: bool, content: Any, role: str, kind: str) -> None:
    found = content_of(SimpleNamespace(ai=ai, content=content, summary=""))
    assert (found.role, found.kind) == (role, kind)


def test_of_a_picture_only_the_preview_is_text() -> None:
    raw = {"raw_content": [{"type": "image_url", "image_url": "x" * 9_000}], "preview": "<image>"}
    assert content_of(SimpleNamespace(ai=False, content=raw, summary="")).text == "<image>"


def test_without_an_address_or_a_token_the_plugin_is_off() -> None:
    assert not read({"url": "http://there"}).is_on
    assert read({"url": "http://there", "token": "t"}).is_on
    assert not read({"url": "http://there", "token": "t", "enabled": "false"}).is_on


@pytest.mark.parametrize(("given", "field"), [({"text": "all"}, "text"), ({"url": "x"}, "url")])
def test_a_wrong_setting_is_named(given: dict[str, str], field: str) -> None:
    with pytest.raises(BadSettings, match=f"^{field}:"):
        read(given)
