"""What forms of the settings need: numbers as a field takes them, and a form's address."""

from __future__ import annotations

from urllib.parse import urlencode

from django import template

register = template.Library()


@register.filter
def plain(value: float) -> str:
    """80, 0.8: as a number field takes it, without separators."""
    return f"{value:.10g}"


@register.simple_tag
def query(**fields: object) -> str:
    """A query string of what is there; escaped where it is put into the page."""
    return urlencode({name: value for name, value in fields.items() if value not in (None, "")})
