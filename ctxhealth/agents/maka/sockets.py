"""The two ways to a runtime host: its WebSocket, and the local socket that it always has."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import Protocol
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import connect

from ctxhealth.agents.maka.host import MESSAGE_BYTES

_OPEN_S = 10.0


class Unreachable(Exception):
    """No connection now; it may come. ``str`` says why."""


class Unauthorized(Exception):
    """The host does not take this credential. ``str`` is a sentence."""


class Ended(Exception):
    """The connection is gone."""


class Socket(Protocol):
    def send(self, text: str) -> None: ...
    def receive(self, timeout: float | None = None) -> str | bytes: ...
    def close(self) -> None: ...


def open_socket(address: str, credential: str | None) -> Socket:
    """``ws://``, ``wss://`` or ``unix:<path>``. Raises Unreachable or Unauthorized."""
    if address.startswith("unix:"):
        return LocalSocket(address.removeprefix("unix:"))
    return WebSocket(address, credential or "")


def address_problem(address: str) -> str | None:
    """What is wrong with an address, as the end of a sentence."""
    if address.startswith("unix:"):
        return None if len(address) > len("unix:") else "unix: needs the path of the socket"
    try:
        parts = urlsplit(address)
        _ = parts.port  # read only to have it checked
    except ValueError as error:
        return f"{address!r}: {str(error)[:1].lower()}{str(error)[1:]}"
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        return f"{address!r} is not ws://host:port/runtime-host, wss://... or unix:<path>"
    if parts.query or parts.username or parts.password:
        return "the address takes no query and no password; the credential has its own option"
    return None


class WebSocket:
    """One JSON object a text message. No Origin, no compression: the host refuses both."""

    def __init__(self, address: str, credential: str) -> None:
        try:
            connecting = connect(
                address, additional_headers={"Authorization": f"Bearer {credential}"},
                compression=None, open_timeout=_OPEN_S, close_timeout=2, max_size=MESSAGE_BYTES,
            )  # fmt: skip
            # Entered and never left, as it outlives this call; every release takes it so.
            self._socket = connecting.__enter__()
        except InvalidStatus as error:
            status = error.response.status_code
            if status in (401, 403):
                raise Unauthorized(
                    f"The runtime host does not take this credential (HTTP {status}): issue one "
                    "with `maka runtime-host access issue` and give it by --credential-file."
                ) from error
            raise Unreachable(f"HTTP {status}") from error
        except (OSError, InvalidHandshake, TimeoutError) as error:
            raise Unreachable(str(error) or type(error).__name__) from error

    def send(self, text: str) -> None:
        try:
            self._socket.send(text)
        except (ConnectionClosed, OSError) as error:
            raise Ended(str(error)) from error

    def receive(self, timeout: float | None = None) -> str | bytes:
        try:
            return self._socket.recv(timeout)
        except (ConnectionClosed, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise Ended(str(error)) from error

    def close(self) -> None:
        self._socket.close()


class LocalSocket:
    """One JSON object a line. Whoever may open it may do everything there."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_OPEN_S)
        try:
            self._socket.connect(os.path.expanduser(path))
        except OSError as error:
            self._socket.close()
            if isinstance(error, PermissionError):
                raise Unauthorized(f"{path} belongs to another user.") from error
            raise Unreachable(error.strerror or str(error)) from error
        self._socket.settimeout(None)
        self._sending = threading.Lock()
        self._buffer = bytearray()

    def send(self, text: str) -> None:
        try:
            with self._sending:
                self._socket.sendall(text.encode() + b"\n")
        except OSError as error:
            raise Ended(str(error)) from error

    def receive(self, timeout: float | None = None) -> bytes:
        while True:
            line, found, rest = self._buffer.partition(b"\n")
            if found:
                self._buffer = bytearray(rest)
                return bytes(line)
            if len(self._buffer) > MESSAGE_BYTES:
                raise Ended("a line is longer than any frame")
            self._buffer += self._more(timeout)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _more(self, timeout: float | None) -> bytes:
        try:
            self._socket.settimeout(timeout)
            data = self._socket.recv(65_536)
        except TimeoutError:
            raise
        except OSError as error:
            raise Ended(str(error)) from error
        if not data:
            raise Ended("the host closed the socket")
        return data
