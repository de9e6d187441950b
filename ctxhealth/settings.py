"""Every setting of the server, from the environment; docs/settings.md describes each."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

from ctxhealth import logs
from ctxhealth.bootstrap import datadir
from ctxhealth.environ import (
    database_from_url,
    envbool,
    envchoice,
    envint,
    envlist,
    envorigin,
    envorigins,
    envsecret,
    envstr,
)


def _prefer_safe_sqlite() -> None:
    """Swap in pysqlite3 where the interpreter's SQLite is older than 3.51.3 (WAL-reset bug).

    Must run before Django imports sqlite3.
    """
    import sqlite3

    if sqlite3.sqlite_version_info >= (3, 51, 3):
        return
    try:
        import pysqlite3
        import pysqlite3.dbapi2
    except ImportError:
        return
    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2


_prefer_safe_sqlite()

BASE_DIR = Path(__file__).resolve().parent.parent

# Product
CTXHEALTH_DATA_DIR = BASE_DIR / envstr("CTXHEALTH_DATA_DIR")
CTXHEALTH_URL = envorigin("CTXHEALTH_URL")
CTXHEALTH_ORIGINS = [*([CTXHEALTH_URL] if CTXHEALTH_URL else []), *envorigins("CTXHEALTH_ORIGINS")]
CTXHEALTH_READ_ONLY = envbool("CTXHEALTH_READ_ONLY")
CTXHEALTH_IMPORT_MB = envint("CTXHEALTH_IMPORT_MB", minimum=1)
CTXHEALTH_WORKERS = envint("CTXHEALTH_WORKERS", minimum=1)
CTXHEALTH_PROXIES = envlist("CTXHEALTH_PROXIES")
CTXHEALTH_ALLOW_OLD_SQLITE = envbool("CTXHEALTH_ALLOW_OLD_SQLITE")
_HTTPS = CTXHEALTH_URL.startswith("https://")

# Django
DEBUG = envbool("CTXHEALTH_DEBUG")
SECRET_KEY = envsecret("SECRET_KEY") or datadir.secret_key(CTXHEALTH_DATA_DIR)
SECRET_KEY_FALLBACKS = envlist("SECRET_KEY_FALLBACKS")
ALLOWED_HOSTS = [
    *envlist("CTXHEALTH_HOSTS"),
    *([urlsplit(CTXHEALTH_URL).hostname or ""] if CTXHEALTH_URL else []),
]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "channels",
    "ctxhealth.store",
    "ctxhealth.web",
    "ctxhealth.ops",
]
MIDDLEWARE = [
    "ctxhealth.web.middleware.security_headers",
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "ctxhealth.web.middleware.not_allowed_page",
    "ctxhealth.web.middleware.DatabaseAway",
]
ROOT_URLCONF = "ctxhealth.urls"
ASGI_APPLICATION = "ctxhealth.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "ctxhealth.web.context.frame",
            ],
        },
    }
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

# Data
DATABASES = {
    "default": database_from_url(
        envsecret("DATABASE_URL"),
        CTXHEALTH_DATA_DIR / "ctxhealth.sqlite3",
        pool=envint("CTXHEALTH_DB_POOL", minimum=2),
    )
}
REDIS_URL = envsecret("REDIS_URL")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "ctxhealth"},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}
# A request's body; uploads of files stream and have their own limit.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 200
# A large body waits beside the data, not in a /tmp that may be memory.
FILE_UPLOAD_TEMP_DIR = str(CTXHEALTH_DATA_DIR)

# Sessions and cookies. A `__Host-` cookie can be set by this very host over HTTPS alone.
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
SESSION_COOKIE_AGE = envint("CTXHEALTH_SESSION_HOURS", minimum=1) * 3600
SESSION_COOKIE_NAME = "__Host-session" if _HTTPS else "ctxhealth_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = _HTTPS
CSRF_COOKIE_NAME = "__Host-csrf" if _HTTPS else "ctxhealth_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = _HTTPS
CSRF_FAILURE_VIEW = "ctxhealth.web.middleware.csrf_failure"
CSRF_TRUSTED_ORIGINS = list(CTXHEALTH_ORIGINS)
MESSAGE_STORAGE = "django.contrib.messages.storage.cookie.CookieStorage"
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]

# Transport. A proxy's X-Forwarded-Proto is believed by the server itself (CTXHEALTH_PROXIES),
# so that no header of a stranger can say "this was HTTPS".
SECURE_SSL_REDIRECT = _HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = envint("CTXHEALTH_HSTS_SECONDS") if _HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# This server speaks for its own host: what the rest of the domain does is not its to promise.
# The data folder is made at the first start, after the checks.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021", "files.E001"]

# Static files come straight from the packages and from static/: no collecting step.
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = BASE_DIR / "staticfiles"
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
SERVESTATIC_MAX_AGE = 60
SERVESTATIC_ALLOW_ALL_ORIGINS = False

LOGGING = logs.configuration(
    envchoice("CTXHEALTH_LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"))
)
