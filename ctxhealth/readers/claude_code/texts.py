"""What the rows written by the program itself say, told apart by their fixed beginnings."""

from __future__ import annotations

import re

from ctxhealth.readers.claude_code.rows import plain_text
from ctxhealth.readers.values import Row

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
