"""What the rows written by the program itself say, told apart by their fixed beginnings."""

from __future__ import annotations

import re

from ctxhealth.readers.claude_code.rows import Row, plain_text

TOO_LONG = "Prompt is too long"
FAILED_COMPACTION = "automatic compaction failed:"
EMPTY_RETRY = "[Your previous response had no visible output"
INTERRUPTED = "[Request interrupted by user"
NO_REPLY = "No response requested."
SUMMARY_FRAME = "This session is being continued from a previous conversation"

_LOCAL = ("<local-command-", "<bash-", "Caveat: The messages below were generated")
_COMMAND = ("<command-name>", "<command-message>")
_NOTICE = ("<task-notification", "<teammate-message", "<agent-notification")
_TAGS = re.compile(r"</?local-command-std(?:out|err)>|\x1b\[[0-9;]{0,16}m")
_TOO_MANY = re.compile(r"([0-9]{3,9}) tokens > ([0-9]{3,9})")
_SUM = re.compile(r"([0-9]{3,9}) \+ [0-9]{1,9} > ([0-9]{3,9})")


def kind_of(row: Row) -> str:
    """prompt, notice, command, local, interrupted, empty_retry or meta."""
    text = plain_text(row).lstrip()[:400]
    if text.startswith(INTERRUPTED):
        return "interrupted"
    if text.startswith(EMPTY_RETRY):
        return "empty_retry"
    if text.startswith(_LOCAL):
        return "local"
    if text.startswith(_COMMAND):
        return "command"
    if row.get("isMeta") is True:
        return "meta"
    return "notice" if text.startswith(_NOTICE) else "prompt"


def command_output(text: str) -> str:
    """The words of a local command's output, without its tags and colours."""
    return _TAGS.sub("", text).strip()


def failed_compact(text: str) -> str | None:
    """Why a manual compaction failed, from its error output; None where the text is none."""
    said = command_output(text[:8_000])
    for mark in ("Error during compaction:", "Error compacting conversation:"):
        if said.startswith(mark):
            return said[len(mark) :].strip() or said
    for mark in ("Not enough messages to compact", "Compaction canceled", "Compaction cancelled"):
        if said.startswith(mark):
            return said
    return None


def stated_sizes(text: str) -> tuple[int | None, int | None]:
    """(prompt, window) as an overflow error states them."""
    found = _TOO_MANY.search(text[:4_000]) or _SUM.search(text[:4_000])
    return (int(found.group(1)), int(found.group(2))) if found else (None, None)


# (mark in lower case, the model error's class, the summarizer error's class)
_CLASSES: tuple[tuple[str, str, str], ...] = (
    ("no assistant message", "provider", "empty"),
    ("prompt is too long", "overflow", "overflow"),
    ("conversation too long", "overflow", "overflow"),
    ("exceed context limit", "overflow", "overflow"),
    ("context_window_exceeded", "overflow", "overflow"),
    ("credit balance", "quota", "quota"),
    ("usage limit", "quota", "quota"),
    ("limit reached", "quota", "quota"),
    ("quota", "quota", "quota"),
    ("billing", "quota", "quota"),
    ("(429)", "rate_limit", "rate_limit"),
    ("rate limit", "rate_limit", "rate_limit"),
    ("rate_limit", "rate_limit", "rate_limit"),
    ("invalid api key", "auth", "auth"),
    ("authentication", "auth", "auth"),
    ("oauth token", "auth", "auth"),
    ("/login", "auth", "auth"),
    ("timed out", "timeout", "timeout"),
    ("timeout", "timeout", "timeout"),
    ("connection error", "network", "network"),
    ("econnre", "network", "network"),
    ("fetch failed", "network", "network"),
    ("too large", "too_large", "overflow"),
    ("content filtering", "filtered", "other"),
    ("overloaded", "provider", "provider"),
    ("server error", "provider", "provider"),
    ("server_error", "provider", "provider"),
)
_STATUS: dict[int, str] = {
    400: "invalid", 401: "auth", 402: "quota", 403: "auth", 404: "invalid", 408: "timeout",
    413: "too_large", 422: "invalid", 429: "rate_limit",
}  # fmt: skip


def model_error(text: str, status: int | None, stated: str | None) -> str:
    """The class of a failed model call, from its words, its status and the row's own word."""
    words = f"{stated or ''} {text[:2_000]}".lower()
    for mark, error, _ in _CLASSES:
        if mark in words:
            return error
    if status is not None:
        return "provider" if status >= 500 else _STATUS.get(status, "other")
    found = re.search(r"api error: ([45][0-9]{2})\b", words)
    if found:
        return model_error("", int(found.group(1)), None)
    return "other"


def summarizer_error(reason: str) -> str:
    """The class of a failed summary, from its reason alone: the transcript has no more."""
    words = reason[:2_000].lower()
    if words.strip() == "exhausted":
        return "overflow"
    for mark, _, error in _CLASSES:
        if mark in words:
            return error
    found = re.search(r"api error: ([45][0-9]{2})\b", words)
    if found:
        status = int(found.group(1))
        return "provider" if status >= 500 else _SUMMARY_STATUS.get(status, "other")
    return "other"


_SUMMARY_STATUS = {401: "auth", 402: "quota", 403: "auth", 408: "timeout", 429: "rate_limit"}
