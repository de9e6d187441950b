"""Notes in Markdown: what people mean is shown, what somebody hides in them does nothing."""

from __future__ import annotations

import re

import pytest

from ctxhealth.web.markdown import html_of


def test_what_people_write_looks_like_it() -> None:
    html = html_of(
        "# Cause\n\nThe *utility* model, **quota**; see `log` and [the page](/chats/1/).\n\n"
        "- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    assert "<h3>Cause</h3>" in html
    assert "<em>utility</em>" in html
    assert '<a href="/chats/1/" rel="noopener noreferrer nofollow">the page</a>' in html
    assert "<li>one</li>" in html
    assert "<td>1</td>" in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onclick='x()'>b</b>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](<java\nscript:alert(1)>)",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:msgbox)",
        "[x](//elsewhere.example/a)",
        "![x](https://elsewhere.example/pixel.png)",
        "<javascript:alert(1)>",
        "[x]: javascript:alert(1)\n\n[x]",
        "<svg onload=alert(1)>",
        '```x" onmouseover=alert(1) y="\ncode\n```',
    ],
)
def test_nothing_in_a_note_runs_or_calls_out(text: str) -> None:
    html = html_of(text)
    tags = re.findall(r"<[^>]*>", html)
    allowed = re.compile(
        r"</?(p|em|strong|code|pre|ul|ol|li|h[3-6]|blockquote|hr|br|del|table|thead|tbody|tr|th|td)"
        r'( class="language-[^"]*")?( ?/)?>|<a href="(https?:|mailto:|/(?!/)|#|[\w%&;.-]+)[^"]*"'
        r' rel="noopener noreferrer nofollow">|</a>'
    )
    assert [tag for tag in tags if not allowed.fullmatch(tag)] == []


def test_a_deep_note_is_shown_in_time() -> None:
    assert html_of(">" * 5_000 + " deep")
    assert html_of("[" * 5_000)
    assert html_of("*a_ " * 2_000)


def test_no_level_of_headings_is_left_out() -> None:
    html = html_of("## Night\n\n#### Late\n\n## Day\n\n# All")
    for heading in ("<h3>Night</h3>", "<h4>Late</h4>", "<h3>Day</h3>", "<h3>All</h3>"):
        assert heading in html, heading
