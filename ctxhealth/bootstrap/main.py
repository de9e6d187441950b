"""From `python3 manage.py ...` to the command itself, inside the project's environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ctxhealth.bootstrap import environment
from ctxhealth.bootstrap.errors import CannotStartError

ROOT = Path(__file__).resolve().parents[2]
MANAGED = ("up", "serve", "test")
_REENTERED = "CTXHEALTH_REENTERED"


def main(argv: list[str]) -> int:
    """Run one command; the exit code is 2 where a sentence says why it could not start."""
    try:
        return _run(argv)
    except CannotStartError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130


def _run(argv: list[str]) -> int:
    command = argv[0] if argv else "help"
    if os.environ.get("CTXHEALTH_NO_VENV") != "1":
        _enter_environment(command, argv)
    if command == "test":
        return _run_tests(argv[1:])
    return _run_django(argv)


def _enter_environment(command: str, argv: list[str]) -> None:
    """Make the environment what the requirements say, then go on inside it."""
    env = environment.Environment(ROOT)
    inside = env.is_current()
    if not inside or command in MANAGED:
        env.ensure(dev=command == "test")
    if inside:
        return
    if os.environ.get(_REENTERED) == "1":
        raise CannotStartError(
            f"The environment {env.folder} does not start its own Python: "
            "delete it and start again."
        )
    sys.stdout.flush()
    python = str(env.python)
    child_environment = {**os.environ, _REENTERED: "1"}
    os.execve(python, [python, str(ROOT / "manage.py"), *argv], child_environment)


def _run_tests(args: list[str]) -> int:
    os.environ.pop(_REENTERED, None)
    from tests.run.main import main as run_tests

    return run_tests(args)


def _run_django(argv: list[str]) -> int:
    os.environ.pop(_REENTERED, None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxhealth.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise CannotStartError(
            f"Django cannot be imported ({error}): delete {ROOT / '.venv'} and start again."
        ) from error
    try:
        from django.conf import settings

        settings.INSTALLED_APPS  # noqa: B018  reads the settings now, for their one sentence
    except ImproperlyConfigured as error:
        raise CannotStartError(f"{error}") from error
    execute_from_command_line(["manage.py", *argv])
    return 0
