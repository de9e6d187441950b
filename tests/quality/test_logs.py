"""A log is read line by line: nothing an agent sends may begin a line of its own."""

from __future__ import annotations

import logging
import sys

from ctxhealth.logs import OneLineFormatter


def formatted(message: str, *args: object, error: bool = False) -> str:
    trace = sys.exc_info() if error else None
    record = logging.LogRecord("ctxhealth", logging.INFO, "x", 1, message, args, trace)
    return OneLineFormatter("%(levelname)s %(message)s").format(record)


def test_a_line_break_in_a_name_stays_within_its_line() -> None:
    assert formatted("chat %s", "a\r\nERROR forged\u2028x") == (
        "INFO chat a\\r\\nERROR forged\\u2028x"
    )


def test_a_terminal_escape_is_shown_and_not_obeyed() -> None:
    assert formatted("%s", "\x1b[31mred\x9b2J\x00") == "INFO \\x1b[31mred\\x9b2J\\x00"


def test_a_traceback_is_one_line_too() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        line = formatted("failed", error=True)
    assert "\n" not in line
    assert "ValueError: first\\nsecond" in line
