"""The agents' socket.

A loop of its own inside Channels' routing: the stock dispatch hops to a thread for every frame.
The order is admission, hello, welcome, then frames; one task reads, one sends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec
from channels.generic.websocket import AsyncWebsocketConsumer

import ctxhealth
from ctxhealth.ingest import admission
from ctxhealth.ingest.gate import Gate
from ctxhealth.ingest.link import Link
from ctxhealth.ingest.outgoing import SEND_SECONDS
from ctxhealth.ingest.taking import Refusal, frame_of, take
from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.store.queries import TokenRow
from ctxhealth.store.through import StoreBusy
from ctxhealth.store.writes.agents import Connected
from ctxhealth.wire import limits
from ctxhealth.wire.frames import Hello, Limits, Welcome

LIMITS = Limits(
    frame_bytes=limits.FRAME_BYTES,
    batch=limits.BATCH_EVENTS,
    inflight=limits.INFLIGHT_EVENTS,
    event_bytes=limits.EVENT_BYTES,
    rate=limits.RATE_EVENTS_PER_SECOND,
)
_LOG = logging.getLogger(__name__)


class AgentConsumer(AsyncWebsocketConsumer):
    """One agent's connection, from handshake to goodbye.

    ``gate`` gives what this process's agents share; it is asked once per socket.
    """

    def __init__(self, *, gate: Callable[[], Gate]) -> None:
        super().__init__()
        self.gate = gate

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        gate = self.gate()
        await receive()
        why = admission.browser_refusal(scope)
        if why is not None:
            _LOG.warning("Refused an agent's socket: the handshake has %s", why)
            gate.table.refused += 1
            # Before the accept: the server answers 403.
            await send({"type": "websocket.close", "code": limits.CLOSE_SCOPE, "reason": ""})
            return
        try:
            link = await _admit(gate, scope, receive, send)
        except Refusal as refusal:
            await _close(gate, send, refusal)
            return
        if link is not None:
            await _serve(gate, link, receive)


async def _admit(gate: Gate, scope: Any, receive: Any, send: Any) -> Link | None:
    """Token, hello, welcome. None where the agent left before. Raises Refusal."""
    token = await _token(gate, scope, send)
    accepted = time.monotonic()
    if token is None:
        raise Refusal(limits.CLOSE_TOKEN, "the token is unknown, expired or revoked")
    if "ingest" not in token.scopes:
        raise Refusal(limits.CLOSE_SCOPE, "the token lacks the scope ingest")
    hello = await _hello(receive)
    if hello is None:
        return None
    skew = _skew(hello, time.monotonic() - accepted)
    hello = _checked(hello, token)
    try:
        connected = await writes.acall(
            writes.agent_connect, project=token.project, hello=hello, skew_ms=skew
        )
    except StoreBusy:
        raise Refusal(limits.CLOSE_OVERLOAD, "the server cannot write now; come back") from None
    return await _welcome(gate, send, hello, token, connected)


async def _token(gate: Gate, scope: Any, send: Any) -> TokenRow | None:
    """Accepts, whatever the token is, so that the agent sees why it is closed."""
    try:
        token = await gate.read(queries.token_check, admission.bearer_of(scope), now_ms())
    except StoreBusy:
        await _send(send, {"type": "websocket.accept"})
        raise Refusal(limits.CLOSE_OVERLOAD, "the database is away; come back") from None
    await _send(send, {"type": "websocket.accept"})
    return token


async def _hello(receive: Any) -> Hello | None:
    try:
        async with asyncio.timeout(limits.HELLO_SECONDS):
            message = await receive()
    except TimeoutError:
        raise Refusal(limits.CLOSE_BAD_FRAME, "no hello within 5 s") from None
    if message["type"] == "websocket.disconnect":
        return None
    text = message.get("text")
    if text is None:
        raise Refusal(limits.CLOSE_BAD_FRAME, "frames are text")
    if len(text) > limits.HELLO_BYTES:
        raise Refusal(limits.CLOSE_TOO_BIG, f"hello: at most {limits.HELLO_BYTES} bytes")
    frame = frame_of(text)
    if not isinstance(frame, Hello):
        raise Refusal(limits.CLOSE_BAD_FRAME, "the first frame must be hello")
    return frame


def _checked(hello: Hello, token: TokenRow) -> Hello:
    if limits.PROTOCOL not in hello.protocols:
        raise Refusal(limits.CLOSE_VERSION, f"this server speaks protocol {limits.PROTOCOL}")
    if token.agent_name is not None and token.agent_name != hello.agent:
        raise Refusal(limits.CLOSE_SCOPE, "hello.agent: the token belongs to another agent")
    if "command" in token.scopes and not hello.caps.read_only:
        return hello
    # What cannot be delivered is not offered: pages read these capabilities.
    return msgspec.structs.replace(hello, caps=msgspec.structs.replace(hello.caps, commands=[]))


def _skew(hello: Hello, waited: float) -> int | None:
    """The agent's clock minus ours, ms; the hello took half a round trip to come."""
    if hello.now is None:
        return None
    return hello.now - (now_ms() - int(min(waited, 2.0) * 500))


async def _welcome(
    gate: Gate, send: Any, hello: Hello, token: TokenRow, connected: Connected
) -> Link:
    link = Link(
        send=send,
        stream=connected.stream,
        conn_no=connected.conn_no,
        acked=connected.acked,
        token=token.id,
        sdk=hello.sdk or "",
        takes_commands=bool(hello.caps.commands),
    )
    link.seq_head = max(0, hello.next_seq - 1)
    link.out.frame(
        Welcome(
            protocol=limits.PROTOCOL,
            server=f"ctxhealth {ctxhealth.__version__}",
            incarnation=connected.incarnation,
            acked=connected.acked,
            limits=LIMITS,
            heartbeat_s=limits.HEARTBEAT_SECONDS,
            now=now_ms(),
        )
    )
    gate.join(link)
    return link


async def _serve(gate: Gate, link: Link, receive: Any) -> None:
    """Read until the agent leaves or is closed; the sender runs beside."""
    sender = asyncio.create_task(_send_all(link))
    code = limits.CLOSE_RESTART
    try:
        code = await _read_all(gate, link, receive)
    finally:
        if link.out.closing and not sender.done():
            await asyncio.wait([sender], timeout=SEND_SECONDS)
        sender.cancel()
        gate.leave(link, link.closed_by or f"closed {code}")


async def _send_all(link: Link) -> None:
    try:
        await link.out.run()
    except TimeoutError:
        link.closed_by = "the agent does not read"
        link.out.close(limits.CLOSE_OVERLOAD)
    except Exception as error:
        # The socket is gone; the reader hears of it from the server.
        _LOG.debug("send to agent %s failed: %s", link.stream.agent_name, error)


async def _read_all(gate: Gate, link: Link, receive: Any) -> int:
    """Frames until the end; the close code."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return int(message.get("code") or 1005)
        if link.out.closing:
            continue
        link.heard = time.monotonic()
        try:
            wait = take(gate, link, message.get("text"))
            if wait is not None:
                await wait
        except Refusal as refusal:
            link.closed_by = refusal.reason
            gate.table.count_close(refusal.code)
            link.out.close(refusal.code, refusal.reason)


async def _close(gate: Gate, send: Any, refusal: Refusal) -> None:
    gate.table.refused += 1
    gate.table.count_close(refusal.code)
    message = {"type": "websocket.close", "code": refusal.code, "reason": refusal.reason[:120]}
    try:
        await _send(send, message)
    except (TimeoutError, OSError, RuntimeError):
        _LOG.debug("an agent left before it was refused: %s", refusal.reason)


async def _send(send: Any, message: dict[str, Any]) -> None:
    async with asyncio.timeout(SEND_SECONDS):
        await send(message)
