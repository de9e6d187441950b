from __future__ import annotations

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db


def test_nothing_and_truth_values_reach_the_database_as_null_and_numbers() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s IS NULL, CASE WHEN %s THEN 7 ELSE 8 END", [None, True])
        assert tuple(cursor.fetchone()) == (True, 7)
        if connection.vendor == "sqlite":
            cursor.execute("SELECT typeof(%s), typeof(%s), %s, %s", [None, False, None, False])
            assert cursor.fetchone() == ("null", "integer", None, 0)
