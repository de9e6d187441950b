"""What an operator reads is complete."""

from __future__ import annotations

from django.conf import settings

from ctxhealth.ops.metrics import LABELLED, METRICS, PREFIX
from ctxhealth.store.writes.tokens import SCOPES
from ctxhealth.web.api.errors import CODE_OF_STATUS
from ctxhealth.web.api.urls import api


def document(name: str) -> str:
    return (settings.BASE_DIR / "docs" / name).read_text("utf-8")


def test_every_metric_is_described() -> None:
    text = document("operations.md")
    for number in METRICS:
        assert f"| `{PREFIX}{number.name}` | {number.kind} | {number.says} |" in text
    for name, says in LABELLED.items():
        assert f"| `{PREFIX}{name}` | gauge | {says} |" in text


def test_every_scope_is_described() -> None:
    for scope in SCOPES:
        assert f"| `{scope}` |" in document("operations.md")


def test_every_route_and_status_of_the_api_is_described() -> None:
    text = document("api.md")
    for path, methods in api.get_openapi_schema(path_prefix="api/v1/")["paths"].items():
        for method in methods:
            assert f"`{method.upper()} {path}`" in text
    for status, code in CODE_OF_STATUS.items():
        assert f"| {status} | `{code}` |" in text
