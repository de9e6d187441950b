"""docs/settings.md tells every name the server reads, with its default and meaning."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from ctxhealth import environ
from ctxhealth.environ import SETTINGS_DOC
from tests.quality.sources import PACKAGE, ROOT, python_files, relative, tree

READERS = {"envstr", "envsecret", "envbool", "envint", "envlist", "envchoice", "envorigin"}
READERS |= {"envorigins"}
_ROW = re.compile(r"^\| `([A-Z_]+)` \| (.*?) \| (.+) \|$", re.MULTILINE)


def documented(section: str = "") -> dict[str, tuple[str, str]]:
    """Name to default and meaning, on the whole page or in one section."""
    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return {match[1]: (match[2], match[3]) for match in _ROW.finditer(text)}


def test_the_page_holds_every_setting_as_it_is() -> None:
    page = documented("Server")
    for setting in SETTINGS_DOC.values():
        default = f"`{setting.default}`" if setting.default else "(empty)"
        assert page.get(setting.name) == (default, setting.meaning), setting.name


def test_settings_reads_exactly_the_documented_names() -> None:
    calls = [
        node
        for node in ast.walk(tree(PACKAGE / "settings.py"))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in READERS
    ]
    read = {str(node.args[0].value) for node in calls if isinstance(node.args[0], ast.Constant)}
    assert read == set(SETTINGS_DOC)


def test_every_name_read_anywhere_is_on_the_page() -> None:
    pattern = re.compile(
        r"environ(?:\.get|\.pop)?[\[(]\s*[\"']([A-Z_]+)[\"']|getenv\([\"']([A-Z_]+)"
    )
    page = documented()
    silent = [
        f"{relative(path)} {name}"
        for path in python_files()
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
        if (name := match[1] or match[2]).startswith("CTXHEALTH_") and name not in page
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("name", "value", "read", "sentence"),
    [
        ("CTXHEALTH_WORKERS", "two", "envint", "must be a whole number, not 'two'"),
        ("CTXHEALTH_WORKERS", "-1", "envint", "must be at least 0, not -1"),
        ("CTXHEALTH_DEBUG", "maybe", "envbool", "must be true or false, not 'maybe'"),
        ("CTXHEALTH_URL", "ctxhealth.example.org", "envorigin", "must be an origin such as"),
        ("CTXHEALTH_URL", "https://h/path", "envorigin", "must be an origin such as"),
        ("CTXHEALTH_ORIGINS", "https://a,b", "envorigins", "must be an origin such as"),
    ],
)
def test_a_bad_value_is_named_with_its_reason(
    name: str, value: str, read: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=f"{name} {re.escape(sentence)}"):
        getattr(environ, read)(name)


def test_a_secret_can_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("from-a-file\n", encoding="utf-8")
    monkeypatch.delenv("SECRET_KEY", raising=False)
    monkeypatch.setenv("SECRET_KEY_FILE", str(tmp_path / "key"))
    assert environ.envsecret("SECRET_KEY") == "from-a-file"


def test_a_secret_from_two_places_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setenv("SECRET_KEY_FILE", str(tmp_path / "key"))
    with pytest.raises(ImproperlyConfigured, match="both set"):
        environ.envsecret("SECRET_KEY")


def test_a_secret_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECRET_KEY", raising=False)
    monkeypatch.setenv("SECRET_KEY_FILE", "/nowhere/key")
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY_FILE names /nowhere/key"):
        environ.envsecret("SECRET_KEY")


def test_a_database_url_becomes_django_settings() -> None:
    made = environ.database_from_url(
        "postgres://me:p%40ss@db.example.org:6432/ctx?sslmode=require", Path("x"), pool=3
    )
    assert made["ENGINE"] == "django.db.backends.postgresql"
    assert (made["USER"], made["PASSWORD"]) == ("me", "p@ss")
    assert (made["HOST"], made["PORT"], made["NAME"]) == ("db.example.org", "6432", "ctx")
    assert made["OPTIONS"]["sslmode"] == "require"
    assert made["OPTIONS"]["pool"]["max_size"] == 3
    assert made["CONN_MAX_AGE"] == 0


def test_sqlite_is_durable_and_takes_its_write_lock_at_once() -> None:
    made = environ.database_from_url("", Path("/data/x.sqlite3"), pool=3)
    assert made["NAME"] == "/data/x.sqlite3"
    assert made["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "synchronous=FULL" in made["OPTIONS"]["init_command"]


@pytest.mark.parametrize("url", ["mysql://h/n", "postgres://h:port/n", "postgres://h"])
def test_a_bad_database_url_is_refused_by_name(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL"):
        environ.database_from_url(url, Path("x"), pool=3)


def test_a_bad_setting_ends_a_command_with_one_sentence(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "CTXHEALTH_WORKERS": "many",
        "CTXHEALTH_DATA_DIR": str(tmp_path / "data"),
    }
    result = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "migrate"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr == "CTXHEALTH_WORKERS must be a whole number, not 'many'.\n"
