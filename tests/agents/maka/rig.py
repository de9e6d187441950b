"""A bridge that runs in a thread, between a host and a server."""

from __future__ import annotations

import argparse
import io
import threading
from pathlib import Path
from typing import Any

from ctxhealth.agents.bridging import CannotBridge, Words
from ctxhealth.agents.maka import arguments
from ctxhealth.agents.maka.bridge import Bridge
from tests.agents.maka.host import CREDENTIAL

Frame = dict[str, Any]


class Running:
    """``with Running(...) as bridge``: stopped at the end, its state kept in ``folder``."""

    def __init__(
        self, folder: Path, host: str, url: str, token: str, *more: str,
        credential: str | None = CREDENTIAL,
    ) -> None:  # fmt: skip
        parser = argparse.ArgumentParser()
        arguments(parser)
        given = ("--host", host, "--url", url, "--token", token, "--state", str(folder))
        self.out, self.err = io.StringIO(), io.StringIO()
        words = Words(out=self.out, err=self.err)
        self.bridge = Bridge(parser.parse_args([*given, *more]), words, credential)
        self.refusal: CannotBridge | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bridge.stop()
        self.wait()

    @property
    def agent(self) -> str:
        return self.bridge.line.reporter.agent

    def wait(self, seconds: float = 20) -> None:
        """Until it ended by itself or was stopped."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the bridge did not end"

    def _run(self) -> None:
        try:
            self.bridge.run()
        except CannotBridge as refusal:
            self.refusal = refusal


def decision(word: str, stage: str = "activeStep", **fields: Any) -> Frame:
    return {"stage": stage, "sourceKind": "runtimeEvents", "decision": word, **fields}
