"""Values nested in events: triggers, usage, snapshot members, steps, latch releases."""

from __future__ import annotations

import msgspec

from ctxhealth.wire.types import (
    Count,
    Dialect,
    Ident,
    ItemKind,
    Millis,
    Ratio,
    Role,
    Scope,
    Sentence,
    Step,
    SummarizerError,
    Word,
)


class Part(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of the values nested in events."""


class Trigger(Part, frozen=True, omit_defaults=True):
    """Where the agent starts compacting: an absolute count or a share of the window."""

    tokens: Count | None = None
    ratio: Ratio | None = None
    inclusive: bool = False
    scope: Scope = "prompt"


class Utility(Part, frozen=True, omit_defaults=True):
    """The model that compaction calls to summarise."""

    model: Word | None = None
    provider: Word | None = None
    window: Count | None = None


class UsageIteration(Part, frozen=True, omit_defaults=True):
    """One pass inside an Anthropic reply; ``type`` message counts as load, compaction does not."""

    type: Word
    input: Count = 0
    output: Count | None = None
    cache_read: Count = 0
    cache_write: Count = 0


class Usage(Part, frozen=True, omit_defaults=True):
    """Usage as the provider billed it; ``dialect`` says whether cached tokens are inside input."""

    dialect: Dialect
    input: Count | None = None
    output: Count | None = None
    cache_read: Count | None = None
    cache_write: Count | None = None
    reasoning: Count | None = None
    total: Count | None = None
    iterations: list[UsageIteration] | None = None


class Content(Part, frozen=True, omit_defaults=True):
    """What a reply held; ``text_chars`` counts non-blank text only."""

    text_chars: Count = 0
    tool_calls: Count = 0
    thinking_chars: Count = 0
    data: Count = 0


class Counted(Part, frozen=True):
    """The server's own count of a text that came without one. ``exact``: by the vocabulary of
    the chat's model; otherwise an estimate."""

    tokens: Count
    exact: bool


class SnapshotBulk(Part, frozen=True, omit_defaults=True):
    id: Ident
    tokens: Count | None = None
    records: Count | None = None
    excerpt: Sentence | None = None


class SnapshotTopic(Part, frozen=True, omit_defaults=True):
    id: Ident
    tokens: Count | None = None
    messages: Count | None = None
    title: Sentence | None = None
    summarised: bool | None = None
    largest: Count | None = None


class SnapshotCurrent(Part, frozen=True, omit_defaults=True):
    tokens: Count | None = None
    messages: Count | None = None


class SnapshotItem(Part, frozen=True, omit_defaults=True, rename={"in_": "in"}):
    """One member of the history in order; ``in`` names its bulk or topic, or ``current``."""

    id: Ident
    role: Role
    kind: ItemKind
    tokens: Count | None = None
    in_: Ident | None = None
    calls: list[Ident] | None = None
    answers: list[Ident] | None = None
    name: Word | None = None
    read: bool | None = None


class StepResult(Part, frozen=True, omit_defaults=True):
    step: Step
    before: Count | None = None
    after: Count | None = None
    calls: Count | None = None


class Summarizer(Part, frozen=True, omit_defaults=True):
    """The summarizer's part in one attempt; ``input`` and ``output`` are over all its calls."""

    model: Word | None = None
    provider: Word | None = None
    window: Count | None = None
    calls: Count | None = None
    input: Count | None = None
    output: Count | None = None
    error: SummarizerError | None = None
    detail: Sentence | None = None


class AddedItem(Part, frozen=True, omit_defaults=True, rename={"in_": "in"}):
    id: Ident
    kind: ItemKind | None = None
    tokens: Count | None = None
    in_: Ident | None = None


class Release(Part, frozen=True, omit_defaults=True):
    """When a latch lapses by itself: ``until`` in ms since the epoch, ``growth`` in tokens."""

    until: Millis | None = None
    growth: Count | None = None
    input_changed: bool | None = None
    turn_end: bool | None = None
    success: bool | None = None


class Holder(Part, frozen=True, omit_defaults=True):
    id: Ident | None = None
    host: Word | None = None
    since: Millis | None = None
    alive: bool | None = None
