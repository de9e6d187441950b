"""Reads the environment for settings.py: typed, documented, failing with one sentence.

Only names in SETTINGS_DOC can be read, so that nothing is undocumented. Each also has a form
`NAME_FILE` that names a file with the value, as secret stores mount them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


@dataclass(frozen=True)
class Setting:
    """One name of the environment: its default as written, what it means, its unit."""

    name: str
    default: str
    meaning: str


_SETTINGS = (
    Setting(
        "CTXHEALTH_URL",
        "",
        "Public origin of the pages, such as `https://ctxhealth.example.org`. With `https` cookies "
        "are secure, HTTP is redirected and HSTS is sent. Empty: served for this machine only.",
    ),
    Setting(
        "CTXHEALTH_HOSTS",
        "localhost,127.0.0.1,[::1]",
        "Host names the pages answer to, comma-separated, beside the one of `CTXHEALTH_URL`. "
        "`*` is refused.",
    ),
    Setting(
        "CTXHEALTH_ORIGINS",
        "",
        "Further exact origins whose pages may open the live socket and post forms, "
        "comma-separated. The server's own pages always may.",
    ),
    Setting(
        "CTXHEALTH_DATA_DIR",
        "var",
        "Folder of the database, the secret key and the lock; relative to `manage.py`. "
        "Made with mode 0700.",
    ),
    Setting(
        "SECRET_KEY",
        "",
        "Signs sessions and one-time links. Empty: made once and kept in the data folder as "
        "`secret.key` (mode 0600).",
    ),
    Setting(
        "SECRET_KEY_FALLBACKS",
        "",
        "Earlier secret keys still accepted while one is being replaced, comma-separated.",
    ),
    Setting(
        "DATABASE_URL",
        "",
        "`postgres://user:password@host:5432/name?sslmode=require` or `sqlite:///path`. Empty: "
        "SQLite in the data folder.",
    ),
    Setting(
        "CTXHEALTH_DB_POOL",
        "8",
        "Connections a process keeps to PostgreSQL at most.",
    ),
    Setting(
        "CTXHEALTH_ALLOW_OLD_SQLITE",
        "false",
        "Serve although SQLite is older than 3.51.3, whose WAL can be corrupted by a rare race.",
    ),
    Setting(
        "REDIS_URL",
        "",
        "`redis://host:6379/0`: carries hints between servers. Empty: inside the one process.",
    ),
    Setting(
        "CTXHEALTH_WORKERS",
        "1",
        "Server processes. More than one is refused for now.",
    ),
    Setting(
        "CTXHEALTH_PROXIES",
        "127.0.0.1",
        "Addresses of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are "
        "believed, comma-separated.",
    ),
    Setting(
        "CTXHEALTH_HSTS_SECONDS",
        "2592000",
        "How long a browser remembers to use HTTPS only, in seconds, where `CTXHEALTH_URL` is "
        "`https`.",
    ),
    Setting(
        "CTXHEALTH_SESSION_HOURS",
        "12",
        "How long a login lasts, in hours.",
    ),
    Setting(
        "CTXHEALTH_READ_ONLY",
        "false",
        "Nobody can act on a chat from this server, whatever their role; everything can be seen.",
    ),
    Setting(
        "CTXHEALTH_IMPORT_MB",
        "512",
        "Largest file that the Import page takes, in MB. A packed one may unpack to four times "
        "that.",
    ),
    Setting(
        "CTXHEALTH_LOG_LEVEL",
        "INFO",
        "Least severe records written to standard error: DEBUG, INFO, WARNING or ERROR.",
    ),
    Setting(
        "CTXHEALTH_DEBUG",
        "false",
        "Django's debug pages. They show settings and source: never where others can reach it.",
    ),
)
SETTINGS_DOC: Mapping[str, Setting] = {setting.name: setting for setting in _SETTINGS}

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def envstr(name: str) -> str:
    """The value of `name`, of the file `name_FILE` names, or the documented default."""
    default = SETTINGS_DOC[name].default
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, "").strip() or default
    if os.environ.get(name):
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set: keep one.")
    try:
        return Path(path).read_text(encoding="utf-8").strip() or default
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}_FILE names {path}, unreadable: {error}.") from error


def envsecret(name: str) -> str:
    """Like envstr; a name of its own so that secrets are seen where they are read."""
    return envstr(name)


def envbool(name: str) -> bool:
    """True for 1, true, yes, on; False for 0, false, no, off; anything else is refused."""
    value = envstr(name).lower()
    if value not in (*_TRUE, *_FALSE):
        raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")
    return value in _TRUE


def envint(name: str, *, minimum: int = 0) -> int:
    """A whole number of at least `minimum`."""
    value = envstr(name)
    try:
        number = int(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from error
    if number < minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum}, not {number}.")
    return number


def envlist(name: str) -> list[str]:
    """Comma-separated values without blanks."""
    return [part.strip() for part in envstr(name).split(",") if part.strip()]


def envchoice(name: str, choices: tuple[str, ...]) -> str:
    """One of `choices`, whatever its case."""
    value = envstr(name).upper()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


def envorigin(name: str) -> str:
    """An origin `scheme://host[:port]` without a path, or the empty string."""
    value = envstr(name)
    return check_origin(name, value) if value else ""


def envorigins(name: str) -> list[str]:
    """Comma-separated origins."""
    return [check_origin(name, value) for value in envlist(name)]


def check_origin(name: str, value: str) -> str:
    """`value` in the form browsers send as Origin; raises ImproperlyConfigured."""
    parts = urlsplit(value.rstrip("/"))
    plain = parts.scheme in ("http", "https") and parts.hostname and not parts.path
    if not plain or parts.query or parts.fragment or parts.username:
        raise ImproperlyConfigured(
            f"{name} must be an origin such as https://ctxhealth.example.org, not {value!r}."
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


_POOL_SECONDS = 2.0


def database_from_url(url: str, default_path: Path, *, pool: int) -> dict[str, Any]:
    """Django's DATABASES entry for `url`; SQLite at `default_path` where it is empty."""
    parts = urlsplit(url)
    if not url:
        return _sqlite(default_path)
    if parts.scheme == "sqlite":
        return _sqlite(Path(unquote(parts.path.removeprefix("/"))))
    if parts.scheme in ("postgres", "postgresql"):
        return _postgresql(url, pool=pool)
    raise ImproperlyConfigured(
        f"DATABASE_URL must begin with postgres:// or sqlite://, not {parts.scheme!r}."
    )


def _sqlite(path: Path) -> dict[str, Any]:
    """WAL is set once by a migration: it stays in the file, and setting it can find it locked."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {
            "timeout": 5,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; "
            "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=134217728; "
            "PRAGMA journal_size_limit=67108864;",
        },
    }


def _postgresql(url: str, *, pool: int) -> dict[str, Any]:
    """Django's own pool: persistent connections leak one per dead thread under ASGI."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"DATABASE_URL has a bad port: {error}.") from error
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ImproperlyConfigured("DATABASE_URL names no database after the host.")
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    # Who asks must hear within 3 s that the database is away.
    options["pool"] = {"min_size": 1, "max_size": pool, "timeout": _POOL_SECONDS}
    options.setdefault("connect_timeout", "5")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(port or ""),
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }
