"""Filters and tags of the pages; every one returns escaped text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ctxhealth.core.model import (
    AttemptView,
    Block,
    ChatSummary,
    Reading,
    Source,
    StepView,
    Structure,
)
from ctxhealth.web import format as fmt
from ctxhealth.web import icicle, states, svg
from ctxhealth.web.preview import Level
from ctxhealth.web.strip import Strip

register = template.Library()

register.filter("num", fmt.number)
register.filter("short", fmt.short)
register.filter("size", fmt.size)
register.filter("took", fmt.duration)
register.filter("words", fmt.words)


@register.filter
def share(part: int | None, whole: int | None) -> str:
    return fmt.percent(part, whole)


@register.filter
def plural(count: int | None, forms: str) -> str:
    """``{{ 3|plural:"call" }}`` or ``{{ 3|plural:"reply,replies" }}``."""
    one, _, many = forms.partition(",")
    return fmt.plural(count, one, many or None)


@register.filter
def region(regions: Mapping[str, str], name: str) -> str:
    """The region's HTML as its own template rendered it; ``name`` may lack the chat's prefix."""
    for key, html in regions.items():
        if key == name or key.endswith(f"-{name}"):
            return html
    return ""


@register.filter
def blocks_line(blocks: Sequence[Block]) -> str:
    """What the structure is made of, in one line."""
    counts = Counter(block.kind for block in blocks)
    said = [fmt.plural(counts[kind], kind) for kind in ("bulk", "topic") if counts[kind]]
    total = sum(block.tokens or 0 for block in blocks)
    unknown = sum(1 for block in blocks if block.tokens is None)
    line = f"{', '.join(said) or 'no topics'}; {fmt.number(total)} tokens"
    return f"{line}; {fmt.plural(unknown, 'block')} of unknown size" if unknown else line


@register.filter
def any_largest(blocks: Sequence[Block]) -> bool:
    return any(block.largest for block in blocks)


@register.simple_tag
def icon(name: str) -> SafeString:
    return format_html(
        '<svg class="i" aria-hidden="true"><use href="{}#{}"/></svg>', _sprite(), name
    )


@cache
def _sprite() -> str:
    return static("icons.svg")


@register.simple_tag(takes_context=True)
def age(context: template.Context, at: int | None) -> SafeString:
    """Time since, kept current by the page's script; needs ``now`` in the context.

    A pushed fragment holds the clock time instead: its text must not change with every look,
    and the script turns it into an age before it is painted.
    """
    if at is None:
        return format_html("{}", fmt.UNKNOWN)
    text = fmt.clock(at, at) if context.get("oob") else fmt.age(at, context["now"])
    return format_html('<time datetime="{}">{}</time>', fmt.iso(at), text)


@register.simple_tag(takes_context=True)
def waited(context: template.Context, at: int) -> SafeString:
    """How long a user has been waiting: ``late`` from a minute on, which the script keeps."""
    pushed = context.get("oob")
    late = not pushed and context["now"] - at >= fmt.LATE_MS
    text = fmt.clock(at, at) if pushed else fmt.age(at, context["now"])
    kind = "wait late" if late else "wait"
    return format_html('<time class="{}" datetime="{}">{}</time>', kind, fmt.iso(at), text)


@register.simple_tag(takes_context=True)
def when(context: template.Context, at: int | None) -> SafeString:
    """A moment on the clock, UTC."""
    if at is None:
        return format_html("{}", fmt.UNKNOWN)
    text = fmt.clock(at, context["now"])
    return format_html('<time class="at" datetime="{}">{}</time>', fmt.iso(at), text)


@register.simple_tag
def state_badge(summary: ChatSummary) -> SafeString:
    return _badge(states.standing(summary), "state")


@register.simple_tag
def severity_badge(severity: Any) -> SafeString:
    return _badge(states.severity(severity), "state")


@register.simple_tag
def outcome_badge(outcome: Any) -> SafeString:
    return _badge(states.outcome(outcome), "tag")


@register.simple_tag
def connection_badge(connection: Any) -> SafeString:
    return _badge(states.connection(connection), "state")


@register.simple_tag
def command_badge(state: Any) -> SafeString:
    return _badge(states.command(state), "tag")


def _badge(meta: states.Meta, kind: str) -> SafeString:
    return format_html(
        '<span class="{} {}">{}{}</span>', kind, meta.tone, icon(meta.icon), meta.label
    )


@register.simple_tag
def strip(value: Strip, size: str) -> SafeString:
    return svg.strip_svg(value, size)


@register.simple_tag
def spark(trend: Sequence[int | None], trigger: int | None) -> SafeString:
    return svg.spark_svg(trend, trigger)


@register.simple_tag
def structure_svg(structure: Structure) -> SafeString:
    return icicle.icicle_svg(structure)


@register.simple_tag
def gauge(value: float | None, limit: float | None, name: str) -> SafeString:
    """A bar of value against limit; empty track where either is unknown."""
    if value is None or not limit:
        return svg.bar_svg((), f"{name}: unknown")
    part = 100 * value / limit
    tone = "g-over" if part > 100 else "g-near" if part >= 90 else "g-fine"
    return svg.bar_svg(((tone, min(100.0, part)),), f"{name}: {round(part)}%")


@register.simple_tag
def ratio_gauge(value: float | None) -> SafeString:
    """The local count per provider token: good near 1, drawn against twice that."""
    if value is None:
        return svg.bar_svg((), "local count per provider token: unknown")
    tone = "g-fine" if 0.8 <= value <= 1.25 else "g-over"
    return svg.bar_svg(((tone, min(100.0, 50 * value)),), f"{value:.2f} local per provider token")


@register.filter
def in_order(values: Iterable[str]) -> list[str]:
    return sorted(values)


@register.simple_tag
def level_bar(level: Level, top: int) -> SafeString:
    """What one step of a preview leaves, to the scale of the history before the first."""
    left, freed = 100 * level.after / (top or 1), 100 * (level.before - level.after) / (top or 1)
    name = f"{fmt.number(level.after)} left"
    return svg.bar_svg((("g-fine", left), ("g-freed", freed)), name)


@register.simple_tag
def change_bars(attempt: AttemptView | StepView, top: int | None) -> SafeString:
    return svg.change_svg(attempt.before, attempt.after, top)


_SOURCES = {
    Source.PROVIDER: "counted by the provider",
    Source.ERROR: "stated in the provider's error",
    Source.AGENT: "the agent's own count",
    Source.LOCAL: "estimated here",
    Source.PENDING: "pending: a compaction ended after the last request",
    Source.UNKNOWN: "not known",
}


@register.filter
def source_words(source: Source) -> str:
    return _SOURCES.get(source, "not known")


@register.filter
def load_class(reading: Reading) -> str:
    """How a reading is drawn: measured, estimate, pending, unreliable or unknown."""
    if reading.source is Source.PENDING:
        return "pending"
    if reading.value is None:
        return "unknown"
    if not reading.reliable:
        return "unreliable"
    return "measured" if reading.source in (Source.PROVIDER, Source.ERROR) else "estimate"


@register.simple_tag
def load_figure(reading: Reading) -> SafeString:
    """The number as its provenance has it drawn; a measured one stands plain."""
    kind = load_class(reading)
    if kind == "measured":
        return format_html("{}", fmt.number(reading.value))
    return format_html('<span class="{}">{}</span>', kind, load_number(reading))


@register.filter
def load_number(reading: Reading) -> str:
    mark = "~" if load_class(reading) in ("estimate", "pending") and reading.value else ""
    return f"{mark}{fmt.number(reading.value)}"
