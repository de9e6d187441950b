"""A faithful fake of Reasonix's HTTP server: as strict, and as silent, as the real one.

It wants its token as a cookie and JSON on every POST, answers unknown paths with its page, checks
the expected session, numbers the frames of turns per process, replays nothing and sends no ids.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from uuid import uuid4

TOKEN = "fake-reasonix-token"
WINDOW = 30_000
_SESSION = "X-Reasonix-Expected-Session-ID"
_ids = count(1)


class Fake:
    """``compact`` is what the next forced compactions do: the name of a method, or a refusal."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.session = uuid4().hex
        self.epoch = uuid4().hex
        self.seq = 0
        self.committed = 2
        self.running = False
        self.turn_id, self.turn_status = "", ""
        self.records: list[dict[str, Any]] = []
        self.used = 3_991
        self.compact: Callable[[], tuple[int, str]] = self.fold
        self.posts: list[tuple[str, dict[str, str]]] = []
        self.asked: list[str] = []
        self.clients: list[queue.Queue[bytes | None]] = []
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Fake:
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self.drop()
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def restart(self) -> None:
        """Another process over the same session: numbers begin anew, a running turn is broken."""
        self.stop()
        self.epoch, self.seq = uuid4().hex, 0
        if self.running:
            self.running, self.turn_status = False, "interrupted"
        self.start()

    def drop(self) -> None:
        with self.lock:
            for client in self.clients:
                client.put(None)
            self.clients.clear()

    # -- what happens in a session

    def begin(self, text: str) -> str:
        """A turn up to its open model call; the call's id."""
        self.running, self.turn_id = True, f"turn_{next(_ids)}"
        self.turn_status = "in_progress"
        self.numbered("turn_status", status="queued")
        self.numbered("turn_started")
        message = self._record("user", text)
        self.numbered("user_message", messageId=message, text=text)
        return self.attempt()

    def attempt(self, number: int = 1) -> str:
        name = f"att-{next(_ids)}"
        self._stream(name, "begin", attempt=number)
        return name

    def answer(self, name: str, text: str, prompt: int, output: int = 20, **usage: int) -> None:
        """The call's usage and text, and the end of the turn."""
        self.used = prompt + output
        self.usage(prompt, output, **usage)
        self._record("assistant", text, name)
        self.numbered("message", messageId=name, text=text)
        self._stream(name, "commit")
        self.done("completed")

    def turn(self, text: str, answer: str, prompt: int) -> None:
        self.answer(self.begin(text), answer, prompt)

    def usage(self, prompt: int, output: int, *, replays: int = 1) -> None:
        """``replays``: the plain numbers are summed over as many sends of one request."""
        self.numbered("usage", usage={
            "promptTokens": prompt * replays, "completionTokens": output * replays,
            "cacheHitTokens": prompt // 2 * replays, "source": "executor",
            "contextPromptTokens": prompt, "contextCompletionTokens": output,
            "contextCacheHitTokens": prompt // 2,
        })  # fmt: skip

    def broken(self, name: str) -> None:
        """The call is broken off; one number goes to an entry that is not streamed."""
        self.seq += 1
        self._stream(name, "commit", reason="interrupted")

    def done(self, status: str, **fields: Any) -> None:
        self.running, self.turn_status = False, status
        self.committed += 2
        self.numbered("turn_done", status=status, **fields)

    def tool(self, call: str, name: str, output: str) -> None:
        tool = {"id": call, "name": name, "args": "{}"}
        self.numbered("tool_dispatch", tool={**tool, "partial": True})
        self.numbered("tool_dispatch", tool={**tool, "runState": "pending"})
        self.numbered("tool_result", tool={**tool, "output": output})
        self.records.append({"message": {
            "role": "assistant", "messageId": f"msg-{call}", "turnId": self.turn_id,
            "content": "", "toolCalls": [{"id": call, "name": name, "arguments": "{}"}],
        }})  # fmt: skip
        self.records.append({"message": {
            "role": "tool", "toolCallId": call, "toolName": name, "content": output,
            "turnId": self.turn_id,
        }})  # fmt: skip

    # -- what forced compactions do

    def fold(self) -> tuple[int, str]:
        before, self.used = self.used, self.used // 3
        self.emit("compaction_started", compaction={"trigger": "manual"})
        self._summary_usage(before)
        detail = f"trigger=manual src={before} proj={self.used} in={before} reqs=1"
        self.emit("notice", text="compaction telemetry", detail=detail, level="info")
        self.emit("context_maintenance", maintenance={
            "status": "applied", "action": "summary", "trigger": "manual",
            "inputTokens": before, "resultTokens": self.used,
        })  # fmt: skip
        self.emit(
            "compaction_done", compaction={"trigger": "manual", "messages": 5, "summary": "s"}
        )
        return 204, ""

    def come_to_nothing(self) -> tuple[int, str]:
        """The summarizer answers nothing: an end without a word, then the receipt."""
        self.emit("compaction_started", compaction={"trigger": "manual"})
        self._summary_usage(self.used, 1)
        self.emit("compaction_done", compaction={"trigger": "manual"})
        self.emit("context_maintenance", maintenance={
            "status": "failed", "action": "summary", "trigger": "manual",
            "inputTokens": self.used,
            "reason": "context summary failed: summarizer returned empty output",
        })  # fmt: skip
        return 500, "summarizer returned empty output"

    def be_refused(self) -> tuple[int, str]:
        """The provider refuses the summarizer: no receipt at all."""
        self.emit("compaction_started", compaction={"trigger": "manual"})
        self.emit("compaction_done", compaction={"trigger": "manual"})
        return 500, 'fake: status 402: {"error": {"code": "insufficient_quota"}}'

    def find_nothing(self) -> tuple[int, str]:
        said = "context is above the maintenance threshold but no foldable region remains"
        self.emit("context_maintenance", maintenance={
            "status": "blocked", "action": "summary", "trigger": "manual",
            "inputTokens": self.used, "reason": said,
        })  # fmt: skip
        return 500, f"context exceeds provider limit and compaction failed: {said}"

    # -- frames

    def numbered(self, kind: str, **fields: Any) -> None:
        with self.lock:
            self.seq += 1
            turn = {"turnId": self.turn_id, "seq": self.seq, "status": self.turn_status}
            self.emit(kind, **{**turn, **fields})

    def emit(self, kind: str, **fields: Any) -> None:
        frame = {"kind": kind, "sessionId": self.session, **fields}
        with self.lock:
            for client in self.clients:
                client.put(b"data: " + json.dumps(frame).encode() + b"\n\n")

    def switch(self) -> str:
        """Another session is opened, as by /new."""
        self.session, self.epoch = uuid4().hex, uuid4().hex
        self.seq, self.committed, self.records = 0, 2, []
        self.turn_id = self.turn_status = ""
        self.emit("session_changed", sessionReset=True)
        return self.session

    def _stream(self, name: str, action: str, **fields: Any) -> None:
        attempt = {"id": name, "action": action, "max": 4, **fields}
        self.numbered("stream_attempt", messageId=name, attemptId=name, streamAttempt=attempt)

    def _summary_usage(self, prompt: int, output: int = 300) -> None:
        usage = {"promptTokens": prompt, "completionTokens": output, "source": "compaction"}
        self.emit("usage", usage=usage)

    def _record(self, role: str, text: str, name: str = "") -> str:
        name = name or f"msg-{next(_ids)}"
        self.records.append({"message": {
            "role": role, "messageId": name, "turnId": self.turn_id, "content": text,
            "createdAt": time.time_ns() // 1_000_000,
        }})  # fmt: skip
        return name

    # -- answers

    def look(self, path: str) -> Any:
        runtime = {
            "sessionId": self.session, "runtimeEpoch": self.epoch, "running": self.running,
            "turnId": self.turn_id, "turnStatus": self.turn_status, "turnEventSeq": self.seq,
            "committedEventSeq": self.committed,
        }  # fmt: skip
        return {
            "/status": {"running": self.running, "label": "fake-small", "runtimeState": runtime},
            "/context": {"used": self.used, "window": WINDOW},
            "/models": {"current": "fake/fake-small"},
            "/sessions": [{"sessionId": self.session, "current": True, "title": "A title"}],
            "/runtime-states": {"sessions": [{"state": runtime}]},
            "/transcript/snapshot": {"records": self.records[-32:]},
            "/goal-diagnostics": {"metadata": {"applicationVersion": "v1.38.11-0.2026"}},
        }.get(path)

    def act(self, path: str) -> tuple[int, str]:
        if path == "/compact":
            if self.running:
                return 500, "cannot compact while a turn is running"
            return self.compact()
        if path == "/cancel":
            if self.running:
                self.done("interrupted", diagnostic={"kind": "cancelled"})
            return 204, ""
        return 405, "method not allowed"


class _Handler(BaseHTTPRequestHandler):
    owner: Fake
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self.owner.asked.append(self.path)
        if not self._allowed():
            return
        if self.path == "/events":
            self._events()
            return
        found = self.owner.look(self.path)
        if found is None:
            self._send(200, "text/html; charset=utf-8", b"<!doctype html>")
        else:
            self._send(200, "application/json", json.dumps(found).encode())

    def do_POST(self) -> None:
        owner = self.owner
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        owner.posts.append((self.path, dict(self.headers)))
        if not self._allowed():
            return
        if self.headers.get("Content-Type") != "application/json":
            self._text(415, "content type must be application/json")
        elif self.headers.get(_SESSION) not in (None, owner.session):
            self._text(409, "active session changed; retry on the current session")
        else:
            self._text(*owner.act(self.path))

    def _allowed(self) -> bool:
        if f"reasonix_token={TOKEN}" in (self.headers.get("Cookie") or ""):
            return True
        self._text(401, "unauthorized")
        return False

    def _events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        client: queue.Queue[bytes | None] = queue.Queue()
        client.put(b": connected\n\n")
        with self.owner.lock:
            self.owner.clients.append(client)
        with contextlib.suppress(OSError):
            while (data := client.get()) is not None:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
                self.wfile.flush()
        self.close_connection = True

    def _text(self, status: int, said: str) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{said}\n".encode() if said else b"")

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
