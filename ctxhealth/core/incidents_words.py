"""Causes and links of incidents in words, defined once for pages, API, alerts and reports."""

from __future__ import annotations

from ctxhealth.core.findings.catalogue import CATALOGUE
from ctxhealth.core.findings.stalls import say_error
from ctxhealth.core.incidents_model import Cause
from ctxhealth.core.incidents_parts import ChainLink
from ctxhealth.core.parts import Fact
from ctxhealth.core.wording import number, plural, sentence_case

_OUTCOMES = {
    "no_progress": "removed nothing",
    "nothing_foldable": "found nothing that could be folded",
    "timed_out": "did not end in time",
    "durability_failed": "could not be stored by the agent",
}
_MODEL = {
    "quota": "has no quota left", "rate_limit": "has reached its rate limit",
    "auth": "refuses the credentials", "network": "cannot be reached",
    "timeout": "does not answer in time", "provider_empty": "sends empty replies",
}  # fmt: skip


def say_cause(cause: Cause) -> str:
    """A cause group's name: ``The utility model glm-flash (zai) answers nothing``."""
    text = _cause(cause)
    if cause.agent:
        text += f" in chats of {cause.agent}"
    return sentence_case(text)


def say_root(code: str) -> str:
    """A root's name where no incident is at hand, as in a filter."""
    if code in CATALOGUE:
        return CATALOGUE[code].title
    if code.startswith("latch_"):
        return f"Latch: {code.removeprefix('latch_').replace('_', ' ')}"
    if code in _OUTCOMES:
        return f"Compaction {_OUTCOMES[code]}"
    if code.startswith("summarizer_"):
        return f"The summarizer {say_error(code.removeprefix('summarizer_'))}"
    return sentence_case(code.replace("_", " "))


def say_link(link: ChainLink) -> str:
    """A link as a sentence that ends with a full stop."""
    if link.kind == "attempt":
        return _say_attempts(link)
    if link.kind == "latch":
        return _say_latch(link)
    if link.code in CATALOGUE and link.facts:
        return CATALOGUE[link.code].sentence(link.facts)
    return f"{link.code.replace('_', ' ')}."


def _cause(cause: Cause) -> str:
    if cause.finding == "summarizer_failing":
        return f"{_utility(cause)} {say_error(cause.error_class)}"
    title = say_root(cause.finding)
    if cause.error_class is None:
        return title
    if cause.provider is not None:
        does = _MODEL.get(cause.error_class, f"fails ({cause.error_class.replace('_', ' ')})")
        return f"{title}: {cause.provider} {does}"
    return f"{title} ({cause.error_class.replace('_', ' ')})"


def _utility(cause: Cause) -> str:
    who = f"the utility model {cause.summarizer_model}" if cause.summarizer_model else ""
    if who and cause.provider:
        return f"{who} ({cause.provider})"
    return who or (f"the utility model of {cause.provider}" if cause.provider else "the summarizer")


def _say_attempts(link: ChainLink) -> str:
    model, _, error, before, scope, freed = link.facts
    tries = plural(link.count, "compaction")
    if link.code in _OUTCOMES:
        return f"{tries} {_OUTCOMES[link.code]}{_of(before, scope)}."
    who = f"the utility model {model}" if model else "the utility model"
    text = f"{who} {say_error(None if error is None else str(error))}: {tries}"
    text += " gave no relief" if freed is None else f" freed {number(int(freed))}"
    return f"{text}{_of(before, scope)}."


def _of(before: Fact, scope: Fact) -> str:
    return "" if before is None else f" of {number(int(before))} {scope} tokens"


def _say_latch(link: ChainLink) -> str:
    kind, justified, reason, _ = link.facts
    text = f"a latch ({str(kind).replace('_', ' ')}) keeps compaction from running"
    if reason:
        text += f": {str(reason).rstrip('.')}"
    return f"{text}; its reason does not justify it." if justified is False else f"{text}."
