"""One record, one line: what an agent sends into a log cannot forge a second one."""

from __future__ import annotations

import logging

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x0A: "\\n",
    0x09: "\\t",
    0x0D: "\\r",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class OneLineFormatter(logging.Formatter):
    """Escapes control characters, line breaks of tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).translate(_CONTROL)


def configuration(level: str) -> dict[str, object]:
    """Django's LOGGING: everything from `level` on to standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": OneLineFormatter,
                "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django's own handlers would mail admins and write a second line.
            "django": {"handlers": [], "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            # A line for every socket that opens belongs to metrics, not to a log.
            "uvicorn": {"level": "DEBUG" if level == "DEBUG" else "WARNING"},
            # A stranger's Host header is answered with 400; a trace for each would be a flood.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "asyncio": {"level": "WARNING"},
        },
    }
