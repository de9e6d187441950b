"""One agent's connection: what it sent, what was answered, and how it stands.

Everything here runs on the loop. The writer alone decides about duplicates, gaps and fences;
this side keeps credits, coalesces answers and gives up on an agent that cannot resume.
"""

from __future__ import annotations

import time
from collections import deque

import msgspec

from ctxhealth.ingest.connections import ConnectionInfo
from ctxhealth.ingest.outgoing import Outgoing, Send
from ctxhealth.ingest.rate import Bucket
from ctxhealth.store.clock import now_ms
from ctxhealth.store.intake import (
    Intake,
    Receipt,
    StreamHandle,
    intake_of,
    intakes_of,
    tombstone_of,
)
from ctxhealth.wire import Batch, Reject, decode_event, limits
from ctxhealth.wire.frames import Events, Heartbeat

# A gap that the agent was told of and that stays open is told again after this long.
RESEND_AGAIN_S = 5.0
RESEND_WINDOW_S = 60.0


class Link:
    """``due``: the next seq to submit; ``awaited``: the seq that a resend asked for; ``models``:
    which of its chats speaks to which model, as far as this connection told."""

    __slots__ = (
        "acked", "awaited", "awaited_at", "bucket", "cancelled", "closed_by", "commands_sent",
        "conn_no", "due", "duplicates", "gaps", "generation", "hb_at", "heard", "inflight",
        "late", "models", "out", "over_since", "pending", "read_only", "rejects", "resends", "sdk",
        "seq_head", "skew_ms", "starved", "stream", "takes_commands", "token",
    )  # fmt: skip

    def __init__(
        self,
        *,
        send: Send,
        stream: StreamHandle,
        conn_no: int,
        acked: int,
        token: int,
        sdk: str,
        takes_commands: bool,
    ) -> None:
        now = time.monotonic()
        self.out = Outgoing(send, stream.epoch)
        self.stream = stream
        self.conn_no = conn_no
        self.acked = acked
        self.due = acked + 1
        self.token = token
        self.sdk = sdk
        self.takes_commands = takes_commands
        self.bucket = Bucket(limits.RATE_EVENTS_PER_SECOND, now)
        self.heard = self.hb_at = now
        self.late = False
        self.inflight = 0
        self.pending: list[Intake] = []
        self.awaited: int | None = None
        self.awaited_at = 0.0
        self.generation = 0
        self.starved = False
        self.resends: deque[float] = deque(maxlen=limits.RESENDS_PER_MINUTE)
        self.over_since: float | None = None
        self.seq_head = 0
        self.skew_ms = stream.skew_ms
        self.read_only = stream.read_only
        self.gaps = self.rejects = self.duplicates = self.commands_sent = 0
        self.closed_by = ""
        self.cancelled: set[str] = set()
        self.models: dict[str, str] = {}

    def info(self) -> ConnectionInfo:
        return ConnectionInfo(
            agent=self.stream.agent,
            conn_no=self.conn_no,
            epoch=self.stream.epoch,
            sdk=self.sdk,
            protocol=limits.PROTOCOL,
            late=self.late,
            heard_s=time.monotonic() - self.heard,
            lag=max(0, self.seq_head - self.acked),
            inflight=self.inflight,
            skew_ms=self.skew_ms,
            gaps=self.gaps,
            rejects=self.rejects,
            duplicates=self.duplicates,
            read_only=self.read_only,
            commands=self.stream.commands,
        )

    # In.

    def take(self, frame: Batch | Events) -> list[Intake]:
        """The frame's events; a bad one becomes a tombstone in its place.

        Empty where the frame lies behind a gap that was already asked for.
        """
        intakes = self._plain(frame) if isinstance(frame, Batch) else self._one_by_one(frame)
        if not intakes or (self.awaited is not None and self._ignored(intakes[0].seq)):
            return []
        last = intakes[-1].seq
        self.due = last + 1
        if last > self.seq_head:
            self.seq_head = last
        return intakes

    def _plain(self, batch: Batch) -> list[Intake]:
        try:
            return intakes_of(batch)
        except Exception:
            # One of them is to blame; alone it becomes a tombstone, and the others are kept.
            raws = [msgspec.Raw(body) for body in batch.bodies]
            return self._one_by_one(Events(epoch=batch.epoch, events=raws))

    def _one_by_one(self, frame: Events) -> list[Intake]:
        expected = self.due
        intakes: list[Intake] = []
        for raw in frame.events:
            intake = _decode(bytes(raw), expected, bool(intakes))
            expected = intake.seq + 1
            intakes.append(intake)
        return intakes

    def _ignored(self, first: int) -> bool:
        if self.awaited is not None and first > self.awaited:
            return True
        self.awaited = None
        self.starved = False
        return False

    def heartbeat(self, frame: Heartbeat) -> None:
        if frame.seq_head is not None:
            self.seq_head = max(self.seq_head, frame.seq_head)
        self.skew_ms = frame.now - now_ms()

    def over_credit(self, count: int) -> bool:
        """Far more in flight than the welcome allowed."""
        return self.inflight + count > 2 * limits.INFLIGHT_EVENTS

    # Back.

    def answer(self, count: int, generation: int, receipt: Receipt) -> None:
        """What the writer says of one submission of ``count`` events.

        What was sent before the last resend and lay behind the same gap says nothing new.
        """
        self.inflight -= count
        self.rejects += len(receipt.rejected)
        self.duplicates += receipt.duplicates
        if receipt.replaced:
            self.closed_by = "replaced"
            self.out.close(limits.CLOSE_REPLACED, "a newer connection of this agent took over")
            return
        if receipt.stored:
            self.resends.clear()
        if receipt.stored or receipt.duplicates:
            self.acked = max(self.acked, receipt.upto)
            self.out.ack(self.acked, receipt.rejected)
        if receipt.resend is not None and generation == self.generation:
            self.gaps += 1
            self.ask_again(receipt.resend)

    def ask_again(self, seq: int) -> None:
        """Ask to go back to ``seq``; the third time in a minute for nothing is the last."""
        now = time.monotonic()
        full = len(self.resends) == limits.RESENDS_PER_MINUTE
        if full and now - self.resends[0] < RESEND_WINDOW_S:
            self.closed_by = "cannot resume"
            text = f"event {seq} was asked for {limits.RESENDS_PER_MINUTE} times and did not come"
            self.out.close(limits.CLOSE_CANNOT_RESUME, text)
            return
        self.resends.append(now)
        self.await_seq(seq)
        self.out.resend(seq)

    def await_seq(self, seq: int) -> None:
        """Ignore everything behind ``seq`` until it comes."""
        self.generation += 1
        self.awaited, self.awaited_at = seq, time.monotonic()
        self.due = seq


def _decode(raw: bytes, expected: int, sure: bool) -> Intake:
    """``sure``: its place in the frame gives the seq, whatever a bad event says of itself."""
    try:
        return intake_of(decode_event(raw))
    except Reject as problem:
        seq = expected if sure or problem.seq is None else problem.seq
        return tombstone_of(problem, raw, seq, now_ms())
    except Exception as error:
        # Whatever it is, the agent must not send the same event for ever.
        text = f"the server failed on it: {type(error).__name__}"
        poison = Reject("internal", "$", text, None, None)
        return tombstone_of(poison, raw, expected, now_ms())
