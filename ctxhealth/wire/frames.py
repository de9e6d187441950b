"""The frames of protocol 1, one Struct per frame and direction."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ctxhealth.wire.types import CommandKind, Count, Ident, Millis, Sentence, Word


class Frame(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="type"):
    """Base of frames; ``type`` is the tag."""


class Capabilities(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the agent can do. ``fallback`` engine: it runs ours and the preview is exact."""

    commands: Annotated[list[Word], Meta(max_length=50)] = []
    fallback: Annotated[str, Meta(pattern="^(engine|own|none)$")] = "none"
    text: Annotated[str, Meta(pattern="^(none|excerpt|full)$")] = "excerpt"
    read_only: bool = False


class Hello(Frame, frozen=True, omit_defaults=True, kw_only=True, tag="hello"):
    """First frame of the agent. ``acked`` is what the agent believes is durable here."""

    protocols: Annotated[
        list[Annotated[int, Meta(ge=1, le=1000)]], Meta(min_length=1, max_length=20)
    ]
    agent: Ident
    epoch: Ident
    first_unacked: Annotated[int, Meta(ge=1)] = 1
    next_seq: Annotated[int, Meta(ge=1)] = 1
    acked: Count = 0
    now: Millis | None = None
    runtime: Word | None = None
    runtime_version: Word | None = None
    sdk: Word | None = None
    caps: Capabilities = Capabilities()
    last_incarnation: Word | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    frame_bytes: int
    batch: int
    inflight: int
    event_bytes: int
    rate: int


class Welcome(Frame, frozen=True, omit_defaults=False, kw_only=True, tag="welcome"):
    protocol: int
    server: str
    incarnation: str
    acked: int
    limits: Limits
    heartbeat_s: int
    now: int


class Events(Frame, frozen=True, kw_only=True, tag="events"):
    """Events stay raw here: each is decoded alone, so that a bad one spoils no other."""

    epoch: Ident
    events: Annotated[list[msgspec.Raw], Meta(max_length=100)]


class Heartbeat(Frame, frozen=True, omit_defaults=True, kw_only=True, tag="hb"):
    """From the agent ``seq_head``; from the server ``acked`` and ``cmd_head``."""

    now: Millis
    seq_head: Count | None = None
    acked: Count | None = None
    cmd_head: Count | None = None


class Bye(Frame, frozen=True, omit_defaults=True, kw_only=True, tag="bye"):
    reason: Sentence | None = None


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    code: str
    path: str
    detail: str


class Ack(Frame, frozen=True, omit_defaults=True, kw_only=True, tag="ack"):
    """Cumulative, and only after the commit with fsync of everything up to ``upto``."""

    epoch: str
    upto: int
    rejected: list[Rejected] = []


class Resend(Frame, frozen=True, kw_only=True, tag="resend", rename={"from_": "from"}):
    epoch: str
    from_: int


class Busy(Frame, frozen=True, kw_only=True, tag="busy"):
    retry_ms: int
    reason: str


class Expected(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The fence: what must still hold when the agent acts. ``compaction`` counts attempts ended."""

    epoch: str | None = None
    compaction: int | None = None
    latch: str | None = None


class Command(Frame, frozen=True, omit_defaults=True, kw_only=True, tag="command"):
    """``deliver_ms`` is what remains until it must be received, ``lease_s`` until it must end."""

    id: str
    kind: CommandKind
    deliver_ms: int
    lease_s: int
    chat: str | None = None
    args: dict[str, Any] = {}
    expected: Expected = Expected()
    reason: str = ""
    by: str = ""


class Cancel(Frame, frozen=True, kw_only=True, tag="cancel"):
    id: str


AgentFrame = Hello | Events | Heartbeat | Bye
ServerFrame = Welcome | Ack | Resend | Busy | Heartbeat | Command | Cancel

AGENT_FRAME: msgspec.json.Decoder[Any] = msgspec.json.Decoder(AgentFrame)
SERVER_FRAME: msgspec.json.Decoder[Any] = msgspec.json.Decoder(ServerFrame)
