"""The user's own client of a runtime host: what Maka's desktop would send, without a desktop."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

COMPOSITION = "maka.interactive"
_ENDED = ("completed", "failed", "cancelled")


class Said(Exception):
    """The host's own error: code and message."""


class Owner:
    """One connection. ``frames`` is all that came without having been asked for, in order."""

    def __init__(self, url: str, credential: str, epoch: int = 39, name: str = "owner") -> None:
        headers = {"Authorization": f"Bearer {credential}"}
        connecting = connect(url, additional_headers=headers, compression=None, max_size=2**20)
        # Entered and never left, as it outlives this call.
        self._socket = connecting.__enter__()
        hello = {
            "kind": "hello", "clientInstanceId": name, "protocolMin": 0, "protocolMax": 0,
            "compatibilityEpoch": epoch, "compositionId": COMPOSITION,
        }  # fmt: skip
        self._socket.send(json.dumps(hello))
        self.welcome: dict[str, Any] = json.loads(self._socket.recv(5))
        self.frames: list[dict[str, Any]] = []
        self._answers: dict[str, dict[str, Any]] = {}
        self._came = threading.Condition()
        self.gone = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, operation: str, seconds: float = 20, **fields: Any) -> Any:
        """The operation's result. Raises Said where the host refuses."""
        request = uuid.uuid4().hex
        text = json.dumps({"requestId": request, "operation": operation, "input": fields})
        self._socket.send(text)
        with self._came:
            self._came.wait_for(lambda: request in self._answers or self.gone.is_set(), seconds)
            assert request in self._answers, f"{operation} was not answered"
            answer = self._answers.pop(request)
        if not answer["ok"]:
            raise Said(f"{answer['error']['code']}: {answer['error']['message']}")
        return answer["result"]

    def turn(self, session: str, text: str, seconds: float = 60, **more: Any) -> dict[str, Any]:
        """Let the user say ``text``; the snapshot of the turn once it ended."""
        return self.ended(session, self.begin(session, text, **more), seconds)

    def begin(self, session: str, text: str, turn: str | None = None, **more: Any) -> str:
        turn = turn or f"turn-{uuid.uuid4().hex[:8]}"
        self.ask("turn.start", sessionId=session, turnId=turn, content={"text": text}, **more)
        return turn

    def ended(self, session: str, turn: str, seconds: float = 60) -> dict[str, Any]:
        return self.until(
            lambda: self._over(self.ask("turn.query", sessionId=session, turnId=turn)), seconds
        )

    def until(self, found: Callable[[], Any], seconds: float = 20) -> Any:
        end = time.monotonic() + seconds
        while True:
            value = found()
            if value:
                return value
            assert time.monotonic() < end, "it did not come"
            time.sleep(0.03)

    def close(self) -> None:
        self._socket.close()

    @staticmethod
    def _over(snapshot: dict[str, Any]) -> dict[str, Any] | None:
        return snapshot if snapshot["status"] in _ENDED else None

    def _listen(self) -> None:
        try:
            for text in self._socket:
                frame = json.loads(text)
                with self._came:
                    if "requestId" in frame:
                        self._answers[frame["requestId"]] = frame
                    else:
                        self.frames.append(frame)
                    self._came.notify_all()
        except ConnectionClosed:
            pass
        finally:
            with self._came:
                self.gone.set()
                self._came.notify_all()
