"""Many rows in one statement.

``executemany`` takes the interpreter's lock back after every row, so that a busy event loop stalls
the writer a thousand times a batch; one statement of many rows gives it away once. A few fixed
sizes keep the prepared statements in the driver's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from django.db import connection

# Ten columns each stay far below SQLite's 32,766 parameters in one statement.
SIZES = (128, 32, 8, 1)


def insert(head: str, rows: Sequence[tuple[Any, ...]], tail: str = "") -> None:
    """``head`` is ``INSERT INTO t (...)``, ``tail`` what follows the values, such as ON CONFLICT.

    With DO UPDATE no key may occur twice in ``rows``: PostgreSQL refuses that.
    """
    if rows:
        insert_values(head, len(rows[0]), list(chain.from_iterable(rows)), tail)


def insert_values(head: str, width: int, values: list[Any], tail: str = "") -> None:
    """The same for the values of all rows in one list, ``width`` of them a row."""
    run = _run_on_sqlite if connection.vendor == "sqlite" else _run
    start = 0
    for size in SIZES:
        while len(values) - start >= size * width:
            run(head, width, size, tail, values[start : start + size * width])
            start += size * width


def _run(head: str, width: int, size: int, tail: str, values: list[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_sql(head, width, size, tail, "%s"), values)


def _run_on_sqlite(head: str, width: int, size: int, tail: str, values: list[Any]) -> None:
    """Past Django's cursor, which rewrites each of a thousand placeholders every time."""
    with connection.wrap_database_errors:
        connection.connection.execute(_sql(head, width, size, tail, "?"), values)


@lru_cache(maxsize=100)
def _sql(head: str, width: int, size: int, tail: str, mark: str) -> str:
    row = f"({', '.join([mark] * width)})"
    return f"{head} VALUES {', '.join([row] * size)} {tail}"
