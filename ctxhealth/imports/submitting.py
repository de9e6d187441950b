"""Events of a reader into the store: as the SDK would send them, a batch a commit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from ctxhealth.client.bodies import body
from ctxhealth.client.texts import TextPolicy
from ctxhealth.imports.errors import Stopped
from ctxhealth.imports.limits import BATCH
from ctxhealth.readers.base import Event
from ctxhealth.store.clock import now_ms
from ctxhealth.store.intake import Intake, Receipt, StreamHandle, intake_of, tombstone_of
from ctxhealth.store.through import installed, submit_inline
from ctxhealth.wire import Reject, decode_event

# Excerpts, redacted: what a session says in full stays in its file.
_TEXTS = TextPolicy("excerpt", None)
_FULL_S = 0.1
_LOOK_S = 0.5
OnReject = Callable[[Event, Reject], None]


class Submitting:
    """Numbers the events of one stream from ``seq`` on and waits for each batch's commit."""

    def __init__(self, stream: StreamHandle, seq: int, stopping: threading.Event) -> None:
        self.stream = stream
        self.seq = seq
        self.stored = 0
        self._stopping = stopping
        self._waiting: list[Intake] = []

    def take(self, events: list[Event], on_reject: OnReject) -> None:
        """Raises Stopped between two batches where the server stops."""
        for event in events:
            self.seq += 1
            self._waiting.append(_intake(event, self.seq, on_reject))
            if len(self._waiting) >= BATCH:
                self.flush()

    def flush(self) -> None:
        """Return when everything that was taken is committed."""
        if self._waiting:
            batch, self._waiting = self._waiting, []
            self.stored += self._submit(batch).stored
        if self._stopping.is_set():
            raise Stopped

    def _submit(self, batch: list[Intake]) -> Receipt:
        writer = installed()
        if writer is None or not writer.running:
            return submit_inline(self.stream, batch)
        answer: Future[Receipt] = Future()
        while not writer.submit_events(self.stream, None, batch, answer.set_result):
            # Live agents fill the queue: theirs goes first.
            if self._stopping.wait(_FULL_S):
                raise Stopped
        while True:
            try:
                return answer.result(_LOOK_S)
            except TimeoutError:
                if self._stopping.is_set() and not writer.running:
                    raise Stopped from None


def _intake(event: Event, seq: int, on_reject: OnReject) -> Intake:
    fields = {key: value for key, value in event.items() if key not in ("type", "ts", "chat")}
    sent = body(event["type"], event["ts"], event.get("chat"), fields, _TEXTS)
    raw = b'{"seq":%d,' % seq + sent[1:]
    try:
        return intake_of(decode_event(raw))
    except Reject as problem:
        on_reject(event, problem)
        return tombstone_of(problem, raw, seq, now_ms())
