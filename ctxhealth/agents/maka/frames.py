"""The runtime host's frames: one JSON object each, with exactly the keys that are known."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any

from ctxhealth.agents.maka.host import COMPOSITION

Frame = dict[str, Any]


class HostSaid(Exception):
    """The host answered a request with an error; ``code`` is one of its own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def hello(name: str, epoch: int) -> str:
    """Never asks for a takeover: that would have the host replaced."""
    return json.dumps({
        "kind": "hello", "clientInstanceId": name, "protocolMin": 0, "protocolMax": 0,
        "compatibilityEpoch": epoch, "compositionId": COMPOSITION,
    })  # fmt: skip


def request(name: str, operation: str, fields: Frame) -> str:
    return json.dumps({"requestId": name, "operation": operation, "input": fields})


def page_request(subscription: str, through: int, after: int | None) -> Frame:
    """What is newer than ``after`` in the transcript, up to ``through``."""
    return {
        "subscriptionId": subscription, "source": "durable", "direction": "newer",
        "throughSequence": through, "cursor": None, "anchorSequence": after,
    }  # fmt: skip


def parse(text: str | bytes) -> Frame:
    """One frame; empty where it is no JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def result_of(frame: Frame) -> Any:
    """The result of an answer. Raises HostSaid."""
    if frame.get("ok") is True:
        return frame.get("result")
    error = frame.get("error")
    told = error if isinstance(error, dict) else {}
    raise HostSaid(str(told.get("code") or "error"), str(told.get("message") or "no reason given"))


class Messages:
    """Puts a transcript's fragments together: a large message comes in several, over pages."""

    def __init__(self) -> None:
        self._sequence: int | None = None
        self._parts: list[bytes] = []
        self.unreadable = 0

    def take(self, fragments: Iterable[Frame]) -> Iterator[tuple[int, Frame]]:
        """The messages that are whole now, with their sequence; unreadable ones are empty."""
        for fragment in fragments:
            sequence = int(fragment["sequence"])
            if sequence != self._sequence or not fragment.get("byteOffset"):
                self._sequence, self._parts = sequence, []
            self._parts.append(base64.b64decode(fragment["data"]))
            if sum(map(len, self._parts)) >= int(fragment["totalBytes"]):
                message = parse(b"".join(self._parts))
                self.unreadable += not message
                self._sequence, self._parts = None, []
                yield sequence, message
