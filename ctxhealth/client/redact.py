"""Secrets out of text, before it leaves the process it was in. Standard library only.

Every pattern starts at a literal and repeats one character class at a time, so the time is
linear in the text. A text without any of the literals costs a few substring searches.
"""

from __future__ import annotations

import re
from typing import Any

_TOKEN = r"[A-Za-z0-9_\-]"

# (what it was, literals one of which must occur, pattern). A group 1 is kept in front.
_RULES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "private key",
        ("-----BEGIN",),
        # No end marker: the text was cut inside the key, so the rest of it goes too.
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]|-(?!----END))*(?:-----END [A-Z0-9 ]{0,40}-----)?",
    ),
    ("aws key", ("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    (
        "aws secret",
        ("ecret_access_key", "ecretAccessKey", "ECRET_ACCESS_KEY"),
        r"((?:[Ss]ecret_?[Aa]ccess_?[Kk]ey|SECRET_ACCESS_KEY)[\"'\s:=]{1,8})[A-Za-z0-9/+=]{30,64}",
    ),
    ("github token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{16,255}"),
    ("github token", ("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{20,255}"),
    ("gitlab token", ("glpat-",), rf"\bglpat-{_TOKEN}{{16,255}}"),
    ("api key", ("sk-",), rf"\bsk-{_TOKEN}{{16,512}}"),
    ("api key", ("sk_live_", "rk_live_", "sk_test_"), r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    ("google key", ("AIza",), rf"\bAIza{_TOKEN}{{30,64}}"),
    ("hugging face token", ("hf_",), r"\bhf_[A-Za-z0-9]{20,255}"),
    ("slack token", ("xox",), r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,255}"),
    ("ctxhealth token", ("ctxh_",), rf"\bctxh_{_TOKEN}{{16,255}}"),
    # The signature may be missing where the text was cut.
    ("jwt", ("eyJ",), rf"\beyJ{_TOKEN}{{8,4096}}\.{_TOKEN}{{8,16384}}(?:\.{_TOKEN}{{0,4096}})?"),
    (
        "bearer",
        ("earer ", "EARER "),
        r"(\b(?:[Bb]earer|BEARER) +)[A-Za-z0-9._~+/\-]{16,16384}={0,2}",
    ),
    ("basic auth", ("asic ", "ASIC "), r"(\b(?:[Bb]asic|BASIC) +)[A-Za-z0-9+/]{16,4096}={0,2}"),
    # Also a password whose closing @ was cut off is not shown, if it follows a user name.
    ("password", ("://",), r"(://[^\s/:@\"'<>]{1,128}:)[^\s/:@\"'<>]{1,256}(?=@)"),
)
_COMPILED = tuple((what, marks, re.compile(pattern)) for what, marks, pattern in _RULES)
_ALL = tuple(dict.fromkeys(mark for _, marks, _ in _COMPILED for mark in marks))
# One character of a literal, seldom in prose, is found ten times faster than the literal: it is
# asked for first, once for all literals that hold it.
_SELDOM = "-_:JKzxICE"


def _grouped() -> tuple[tuple[str, tuple[str, ...]], ...]:
    groups: dict[str, list[str]] = {}
    for mark in _ALL:
        first = next((char for char in _SELDOM if char in mark), "")
        groups.setdefault(first, []).append(mark)
    return tuple((char, tuple(marks)) for char, marks in groups.items())


# The empty character is in every text.
_GROUPS = _grouped()


def suspicious(text: str) -> bool:
    """Whether any literal of a secret occurs at all: the cheap question before ``redact``."""
    for char, marks in _GROUPS:
        if char in text:
            for mark in marks:
                if mark in text:
                    return True
    return False


def redact(text: str) -> str:
    """``text`` with each secret replaced by ``[redacted: what it was]``. Idempotent."""
    if suspicious(text):
        for what, marks, pattern in _COMPILED:
            if any(mark in text for mark in marks):
                text = pattern.sub(_mask(what), text)
    return text


def redact_value(value: Any) -> Any:
    """The same for every string inside lists and dictionaries; keys are left alone."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, (list, tuple)):
        return [redact_value(entry) for entry in value]
    if isinstance(value, dict):
        return {key: redact_value(entry) for key, entry in value.items()}
    return value


def _mask(what: str) -> Any:
    def replacement(found: re.Match[str]) -> str:
        kept = found.group(1) if found.re.groups else ""
        return f"{kept}[redacted: {what}]"

    return replacement
