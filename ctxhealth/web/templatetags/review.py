"""Tags of the incident pages; every one returns escaped text."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ctxhealth.web import incidents_axis_svg
from ctxhealth.web.format import UNKNOWN, duration, iso, moment
from ctxhealth.web.incidents_axis import Axis
from ctxhealth.web.markdown import html_of

register = template.Library()

register.filter("markdown", html_of)


@register.simple_tag
def axis(value: Axis, now: int, here: str) -> SafeString:
    """The time axis with the scrubber's line at ``now`` (ms)."""
    return incidents_axis_svg.axis_svg(value, now=now, here=here)


@register.simple_tag
def utc(at: int | None) -> SafeString:
    """A moment in full, with its zone: a report is read on other days and in other places."""
    value = moment(at)
    if value is None:
        return format_html("{}", UNKNOWN)
    text = f"{value.day} {value:%b %Y %H:%M:%S} UTC"
    return format_html('<time class="at" datetime="{}">{}</time>', iso(at), text)


@register.simple_tag
def utc_clock(at: int | None) -> SafeString:
    """The time of day alone, where the day stands beside it."""
    value = moment(at)
    if value is None:
        return format_html("{}", UNKNOWN)
    return format_html('<time class="at" datetime="{}">{}</time>', iso(at), f"{value:%H:%M:%S}")


@register.filter
def span(ms: int | None) -> str:
    """How long it lasted; ``?`` where an end is not known, never a negative."""
    return UNKNOWN if ms is None else duration(max(0, ms))


@register.simple_tag
def utc_day(at: int | None) -> SafeString:
    """The day with its zone, beneath a time of day."""
    value = moment(at)
    return format_html("{}", f"{value.day} {value:%b %Y} UTC" if value else UNKNOWN)
