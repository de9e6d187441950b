"""The API under requests made up from its own document: never a 500, and what it says it is."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.conftest import press
from tests.live.world import Agent

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 12


@pytest.fixture
def schema() -> Any:
    return schemathesis.openapi.from_wsgi("/api/openapi.json", get_wsgi_application())


def test_made_up_requests_are_answered_as_the_document_says(
    robot: Agent, operator: Client, schema: Any
) -> None:
    pk = robot.chat("c1", 60_000)
    press(operator, pk)
    headers = {"Authorization": operator.defaults["HTTP_AUTHORIZATION"]}
    seen: set[int] = set()
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == 10
    for operation in operations:

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), known=st.booleans())
        def check(case: Any, known: bool) -> None:
            if known and "chat_id" in case.path_parameters:
                case.path_parameters["chat_id"] = pk
            response = case.call(headers=headers)
            seen.add(response.status_code)
            case.validate_response(response, checks=CHECKS)

        check()
    assert 200 in seen
    assert 404 in seen
