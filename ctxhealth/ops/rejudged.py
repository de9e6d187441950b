"""After rules changed by a command: whoever can judge the stored chats again does so."""

from __future__ import annotations

from ctxhealth.bootstrap.errors import CannotStartError
from ctxhealth.ops import serving
from ctxhealth.store.rejudging import rejudge


def rejudged() -> str:
    """Judge them here where no server runs; the running one notices within seconds."""
    try:
        with serving.data_dir_held():
            return f"{rejudge():,} chats were judged again."
    except CannotStartError:
        return "The running server judges its chats again now."
