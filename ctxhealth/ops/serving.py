"""One uvicorn with the options that agents and pages need; used by `up` and by `serve`."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import socket
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from django.conf import settings

from ctxhealth.bootstrap.errors import CannotStartError
from ctxhealth.bootstrap.locks import FileLock
from ctxhealth.ops.websocket import WebSocket
from ctxhealth.wire import limits

Listener = socket.socket
APPLICATION = "ctxhealth.asgi:application"
_LAST_PORT = 65535
_BACKLOG = 2048
_PING_SECONDS = 20
_GRACEFUL_SECONDS = 10
# Frames read ahead of the consumer, per socket; then TCP holds the agent back.
_WS_QUEUE = 4


@dataclass(frozen=True)
class Address:
    """Where the server listens and how a browser or an agent of this machine names it."""

    host: str
    port: int

    @property
    def origin(self) -> str:
        """The public origin where one is set, else the listening address."""
        return settings.CTXHEALTH_URL or self.local

    @property
    def local(self) -> str:
        """The origin for a process of this machine, whatever stands in front of the server."""
        return f"http://{self._reachable}:{self.port}"

    @property
    def _reachable(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"[{host}]" if ":" in host else host


def add_address_arguments(parser: ArgumentParser) -> None:
    """--host and --port, alike for every command that serves."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", default=8000, type=_port, help="port to listen on; 0: any free")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise ArgumentTypeError(f"a port is a number from 0 to {_LAST_PORT}, not {text!r}")
    return int(text)


def end_on_signal(signum: int, frame: object) -> None:
    """End by an exception, so that what was started is stopped; uvicorn raises SIGTERM again."""
    raise SystemExit(0)


def listen(host: str, port: int) -> tuple[Listener, Address]:
    """A socket bound before anything is made or printed; CannotStartError says why not."""
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotStartError(f"The host {host} is not known: {error.strerror}.") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(target)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotStartError(_bind_sentence(error, host, port)) from error
    listener.setblocking(False)
    return listener, Address(host, int(listener.getsockname()[1]))


def _bind_sentence(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is taken by another program: choose another one with --port."
    if error.errno == errno.EACCES:
        return f"Port {port} is not open to this user: choose one above 1023 with --port."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine: choose another one with --host."
    return f"{host}:{port} cannot be listened on: {error.strerror}."


@contextmanager
def data_dir_held() -> Iterator[None]:
    """Keep the data folder for this server; CannotStartError where another server has it."""
    lock = FileLock(settings.CTXHEALTH_DATA_DIR / "server.lock")
    if not lock.acquire():
        raise CannotStartError(
            f"Another server (process {lock.holder()}) already uses "
            f"{settings.CTXHEALTH_DATA_DIR}: stop it, or set CTXHEALTH_DATA_DIR."
        )
    try:
        yield
    finally:
        lock.release()


class _Server(uvicorn.Server):
    """Says when it really serves, and when it is about to end but still answers."""

    def __init__(
        self, config: uvicorn.Config, on_ready: Callable[[], None], on_end: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_end = on_end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.to_thread(self._on_end)
        await super().shutdown(sockets)


def run(
    listener: Listener, on_ready: Callable[[], None], on_end: Callable[[], None] = lambda: None
) -> None:
    """Serve on `listener` until a signal; `on_ready` is called once it serves, `on_end` before
    it stops to."""
    _Server(_config(), on_ready, on_end).run(sockets=[listener])


def _config() -> uvicorn.Config:
    return uvicorn.Config(
        APPLICATION,
        loop="uvloop" if importlib.util.find_spec("uvloop") else "asyncio",
        http="httptools",
        ws=WebSocket,
        ws_max_size=limits.FRAME_BYTES,
        ws_max_queue=_WS_QUEUE,
        ws_ping_interval=_PING_SECONDS,
        ws_ping_timeout=_PING_SECONDS,
        # Deflate costs about half a megabyte a connection.
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=_GRACEFUL_SECONDS,
        lifespan="on",
        workers=1,
        backlog=_BACKLOG,
        proxy_headers=True,
        forwarded_allow_ips=settings.CTXHEALTH_PROXIES,
        server_header=False,
        access_log=False,
        log_config=None,
    )
