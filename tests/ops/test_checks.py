"""System checks refuse what would break a promise, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django import Settings


def ids() -> set[str | None]:
    return {message.id for message in run_checks() if (message.id or "").startswith("ops.")}


def test_the_default_settings_have_no_complaint() -> None:
    assert ids() == set()


def test_a_wildcard_host_is_refused(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["ctx.example", "*"]
    assert ids() == {"ops.E001"}


def test_a_wildcard_origin_is_refused(settings: Settings) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.example"]
    assert ids() == {"ops.E002"}


def test_a_short_secret_is_refused(settings: Settings) -> None:
    settings.SECRET_KEY = "short"
    assert ids() == {"ops.E003"}


def test_hints_in_memory_are_refused_with_several_workers(settings: Settings) -> None:
    settings.CTXHEALTH_WORKERS = 2
    assert ids() == {"ops.E004"}


def test_a_shared_layer_is_enough_for_several_workers(settings: Settings) -> None:
    settings.CTXHEALTH_WORKERS = 2
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}
    }
    assert "ops.E004" not in ids()


@pytest.mark.parametrize(("mode", "found"), [(0o700, set()), (0o755, {"ops.W001"})])
def test_a_data_folder_that_anybody_can_enter_is_told(
    settings: Settings, tmp_path: Path, mode: int, found: set[str]
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(mode)
    settings.CTXHEALTH_DATA_DIR = folder
    assert ids() == found
