"""A runtime host of Maka that is none: as strict as the real one, and driven by a script.

Wrong Bearer: 401; any Origin: 403; another path: 404. Another epoch: ``incompatible``. An unknown
operation, a key too many or too few, an id used twice, more than 64 requests at once: the socket
is cut without a frame. 16 subscriptions a connection, frames numbered per subscription.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
import uuid
from http import HTTPStatus
from typing import Any

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from ctxhealth.agents.maka.host import GRANTS
from tests.agents.maka.operations import Operations, Refused
from tests.agents.maka.script import Session

CREDENTIAL = "maka_rh_" + "c" * 43
_IN_FLIGHT = 64
_PAGE = ("subscriptionId", "source", "direction", "throughSequence", "cursor", "anchorSequence",
         "maxBytes")  # fmt: skip
Frame = dict[str, Any]
# Operation -> the sets of keys that its input may have.
_KEYS: dict[str, list[set[str]]] = {
    "host.status": [set()],
    "session.catalog.query": [{"kind"}, {"kind", "sessionId"}, {"kind", "revision", "cursor"}],
    "subscription.open": [{"sessionId", "transcript"}],
    "subscription.close": [{"subscriptionId"}],
    "session.transcript.page": [set(_PAGE)],
    "turn.query": [{"sessionId", "turnId"}],
    "turn.stop": [{"sessionId", "turnId", "runId"}],
    "context.diagnostics.query": [{"sessionId"}],
    "execution.inspect.query": [
        {"kind", "sessionId", "turnId"}, {"kind", "sessionId", "agentRunId"},
    ],
    "context.compact": [{"sessionId", "turnId"}],
}  # fmt: skip


class Cut(Exception):
    """The socket is cut without a word."""


class Peer:
    """One connection: its subscriptions, the frames that wait to be sent."""

    def __init__(self, host: FakeHost, send: Any, cut: Any) -> None:
        self.host, self._send, self.cut = host, send, cut
        self.subscriptions: dict[str, list[Any]] = {}
        self.asked: set[str] = set()
        self.waiting = 0
        self.lock = threading.RLock()

    def send(self, frame: Frame) -> None:
        try:
            with self.lock:
                self._send(json.dumps(frame))
        except (ConnectionClosed, OSError):
            return

    def push(self, session: str, kind: str, **fields: Any) -> None:
        with self.lock:
            for name, entry in list(self.subscriptions.items()):
                if entry[0] == session:
                    frame = {"kind": f"subscription.{kind}", "hostEpoch": self.host.epoch_id,
                             "subscriptionId": name, "sequence": entry[1], **fields}  # fmt: skip
                    entry[1] += 1
                    self.send(frame)


class FakeHost(Operations):
    """``start`` it or use it in ``with``. ``compatibility`` is its epoch."""

    def __init__(
        self, compatibility: int = 39, grants: tuple[str, ...] = GRANTS, path: str | None = None
    ) -> None:
        self.compatibility, self.grants = compatibility, grants
        self.epoch_id = str(uuid.uuid4())
        self.sessions: dict[str, Session] = {}
        self.peers: list[Peer] = []
        self.most_peers = 0
        self.asked: list[tuple[str, Frame]] = []
        self.cuts: list[str] = []
        self.draining = False
        self.others = 1
        self.answering = threading.Event()
        self.answering.set()
        self.port = 0
        self._path = path
        self._server: Server | None = None
        self._listener: socket.socket | None = None

    @property
    def url(self) -> str:
        return f"unix:{self._path}" if self._path else f"ws://127.0.0.1:{self.port}/runtime-host"

    def __enter__(self) -> FakeHost:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        if self._path is not None:
            self._listen()
            return
        self._server = serve(
            self._websocket, "127.0.0.1", self.port, process_request=_admit, compression=None
        )
        self.port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """As SIGTERM does: every socket drops without a closing frame."""
        for peer in list(self.peers):
            peer.cut()
        if self._server is not None:
            self._server.shutdown()
        if self._listener is not None:
            self._listener.close()
        self.peers = []

    def restart(self) -> None:
        """A new process over the same root: subscriptions are gone, the records are not."""
        self.stop()
        self.epoch_id = str(uuid.uuid4())
        self.start()

    def session(self, id: str, /, **facts: Any) -> Session:
        made = self.sessions[id] = Session(self, id, **facts)
        self.broadcast("session.catalog.changed", sessionId=id, revision=1)
        return made

    def push(self, session: str, kind: str, **fields: Any) -> None:
        for peer in list(self.peers):
            peer.push(session, kind, **fields)

    def broadcast(self, kind: str, **fields: Any) -> None:
        for peer in list(self.peers):
            peer.send({"kind": kind, **fields})

    def slow_consumer(self, session: str) -> None:
        self.push(session, "closed", reason="slow_consumer")
        for peer in self.peers:
            peer.subscriptions = {
                name: entry for name, entry in peer.subscriptions.items() if entry[0] != session
            }

    def asked_for(self, operation: str) -> list[Frame]:
        return [fields for name, fields in self.asked if name == operation]

    # -- connections

    def _websocket(self, connection: ServerConnection) -> None:
        def cut() -> None:
            connection.socket.shutdown(socket.SHUT_RDWR)

        peer = Peer(self, connection.send, _quietly(cut))
        try:
            self._serve(peer, iter(connection))
        except ConnectionClosed:
            return
        finally:
            self._gone(peer)

    def _listen(self) -> None:
        listener = self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(self._path))
        listener.listen()

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=self._local, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def _local(self, connection: socket.socket) -> None:
        def send(text: str) -> None:
            connection.sendall(text.encode() + b"\n")

        peer = Peer(self, send, _quietly(lambda: connection.shutdown(socket.SHUT_RDWR)))
        try:
            with connection.makefile("rb") as lines:
                self._serve(peer, iter(lines))
        except OSError:
            return
        finally:
            self._gone(peer)

    def _gone(self, peer: Peer) -> None:
        if peer in self.peers:
            self.peers.remove(peer)

    def _serve(self, peer: Peer, frames: Any) -> None:
        if not self._greet(peer, json.loads(next(frames))):
            return
        self.peers.append(peer)
        self.most_peers = max(self.most_peers, len(self.peers))
        requests: queue.Queue[Frame | None] = queue.Queue()
        threading.Thread(target=self._work, args=(peer, requests), daemon=True).start()
        try:
            for text in frames:
                request = json.loads(text)
                self._check(peer, request)
                peer.waiting += 1
                if peer.waiting > _IN_FLIGHT:
                    raise Cut("more than 64 requests at once")
                requests.put(request)
        except Cut as why:
            self.cuts.append(str(why))
            peer.cut()
        finally:
            requests.put(None)

    def _greet(self, peer: Peer, hello: Frame) -> bool:
        known = {
            "kind", "clientInstanceId", "protocolMin", "protocolMax", "compatibilityEpoch",
            "compositionId",
        }  # fmt: skip
        common = {"hostEpoch": self.epoch_id, "compositionId": "maka.interactive",
                  "compositionRevision": "3"}  # fmt: skip
        if set(hello) != known or hello["kind"] != "hello":
            self.cuts.append("hello")
            peer.cut()
        elif self.draining:
            peer.send({"kind": "draining", **common})
        elif hello["compatibilityEpoch"] != self.compatibility or hello["protocolMin"] > 0:
            peer.send({"kind": "incompatible", "protocolMin": 0, "protocolMax": 0,
                       "compatibilityEpoch": self.compatibility, "state": "ready",
                       "replacement": "blocked_by_residency", **common})  # fmt: skip
        else:
            peer.send({"kind": "accepted", "rootId": "f" * 64, "connectionId": "c",
                       "selectedProtocol": 0, "compatibilityEpoch": self.compatibility,
                       "state": "ready", **common})  # fmt: skip
            return True
        return False

    def _check(self, peer: Peer, request: Frame) -> None:
        name = request.get("requestId")
        if set(request) != {"requestId", "operation", "input"} or name in peer.asked:
            raise Cut(f"request {sorted(request)}")
        peer.asked.add(str(name))
        keys = _KEYS.get(request["operation"])
        if keys is None or set(request["input"]) not in keys:
            raise Cut(f"{request['operation']} {sorted(request['input'])}")
        tail = request["input"].get("transcript", {}).get("maxBytes", 1024)
        if not 2 <= tail <= 16_384:
            raise Cut("transcript.maxBytes")

    def _work(self, peer: Peer, requests: queue.Queue[Frame | None]) -> None:
        while (request := requests.get()) is not None:
            self.answering.wait(20)
            envelope = {"requestId": request["requestId"], "operation": request["operation"]}
            self.asked.append((request["operation"], request["input"]))
            try:
                result = self.answer(peer, request["operation"], request["input"])
                peer.send({**envelope, "ok": True, "result": result})
            except Refused as error:
                code, message = error.args
                told = {"code": code, "message": message}
                peer.send({**envelope, "ok": False, "error": told})
            peer.waiting -= 1


def _admit(connection: ServerConnection, request: Request) -> Response | None:
    status = None
    if request.path != "/runtime-host":
        status = HTTPStatus.NOT_FOUND
    elif "Origin" in request.headers:
        status = HTTPStatus.FORBIDDEN
    elif request.headers.get("Authorization") != f"Bearer {CREDENTIAL}":
        status = HTTPStatus.UNAUTHORIZED
    if status is None:
        return None
    return Response(status, status.phrase, Headers([("Content-Length", "0")]), b"")


def _quietly(act: Any) -> Any:
    def quiet() -> None:
        try:
            act()
        except OSError:
            return

    return quiet
