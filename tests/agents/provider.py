"""A model provider of our own on loopback: OpenAI's two dialects and Anthropic's, scripted.

    with Provider() as provider:
        provider.script("fake-chat", says("hello"))
        provider.script("fake-utility", *[out_of_quota()] * 3, says("a summary"))

Each request of a model takes its next step; the last one stays. Requests are kept with what was
sent, what was answered and the usage that was reported, so that a test can compare a page with it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agents import anthropic_dialect, dialects
from tests.agents.dialects import Answer, count_tokens, says

__all__ = [
    "Answer",
    "Asked",
    "Provider",
    "Refusal",
    "count_tokens",
    "empty",
    "out_of_quota",
    "overflow",
    "rate_limited",
    "says",
    "slow",
]


@dataclass(frozen=True)
class Refusal:
    """An error of the provider, in OpenAI's shape."""

    status: int
    code: str
    message: str
    kind: str = "invalid_request_error"


@dataclass(frozen=True)
class Slow:
    """``step`` after ``seconds``, or as soon as ``until`` is set."""

    seconds: float
    step: Answer | Refusal
    until: threading.Event | None = None


@dataclass
class Asked:
    """One request: the body as it came, tokens by ``count_tokens``, and what became of it.

    ``usage`` is what was put into the answer, None where nothing was said of it.
    """

    path: str
    model: str
    body: dict[str, Any]
    prompt: int
    at: float
    status: int = 0
    answer: str | None = None
    usage: dict[str, Any] | None = None

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))


Step = Answer | Refusal | Slow | Callable[[Asked], "Answer | Refusal | Slow"]


def empty(finish: str = "stop") -> Answer:
    """200 with no content at all."""
    return Answer("", finish=finish)


def out_of_quota() -> Refusal:
    return Refusal(402, "insufficient_quota", "You have no credits left.", "insufficient_quota")


def rate_limited() -> Refusal:
    return Refusal(429, "rate_limit_exceeded", "Rate limit reached.", "rate_limit_error")


def overflow(window: int | None = None, prompt: int | None = None) -> Refusal:
    """400 context_length_exceeded; with ``window`` and ``prompt`` it states them."""
    said = "Your input exceeds the context window of this model."
    if window is not None and prompt is not None:
        said = (
            f"This model's maximum context length is {window} tokens. However, your messages "
            f"resulted in {prompt} tokens. Please reduce the length of the messages."
        )
    return Refusal(400, "context_length_exceeded", said)


def slow(seconds: float, step: Answer | Refusal, until: threading.Event | None = None) -> Slow:
    return Slow(seconds, step, until)


@dataclass
class _Book:
    """What the handler threads share."""

    steps: dict[str, deque[Step]] = field(default_factory=dict)
    windows: dict[str, int] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    talks: dict[str, list[Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Provider:
    """Serves from ``start`` (or ``with``) until ``stop``.

    ``responses``: False answers /v1/responses with 404, as a provider that only knows
    /v1/chat/completions. ``stream_usage``: ``asked`` (as OpenAI: only with
    ``stream_options.include_usage``), ``always`` or ``never``. ``windows[model]`` makes a prompt
    of more tokens an overflow error, whatever the script says.
    """

    def __init__(self, *, responses: bool = False, stream_usage: str = "asked") -> None:
        self.responses, self.stream_usage = responses, stream_usage
        self.book = _Book()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The ``api_base``: ends in /v1."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def windows(self) -> dict[str, int]:
        return self.book.windows

    @property
    def asked(self) -> list[Asked]:
        """Every request for a model's answer so far, in the order of arrival."""
        with self.book.lock:
            return list(self.book.asked)

    def asked_of(self, model: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.model == model]

    def script(self, model: str, *steps: Step) -> None:
        """What ``model`` does from now on; the last step stays."""
        with self.book.lock:
            self.book.steps[model] = deque(steps)

    def start(self) -> Provider:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def __enter__(self) -> Provider:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self, asked: Asked) -> Answer | Refusal:
        """The next step for this request, waited for where it is slow."""
        with self.book.lock:
            self.book.asked.append(asked)
            window = self.book.windows.get(asked.model)
            steps = self.book.steps.get(asked.model)
            step = _next(steps) if steps else None
        if window is not None and asked.prompt > window:
            return overflow(window, asked.prompt)
        if step is None:
            return Refusal(404, "model_not_found", f"The model {asked.model!r} does not exist.")
        if callable(step):
            step = step(asked)
        return _waited(step) if isinstance(step, Slow) else step


def _next(steps: deque[Step]) -> Step:
    return steps.popleft() if len(steps) > 1 else steps[0]


def _waited(step: Slow) -> Answer | Refusal:
    if step.until is None:
        time.sleep(step.seconds)
    else:
        step.until.wait(step.seconds)
    return step.step


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        owner = provider

    return Handler


class _Handler(BaseHTTPRequestHandler):
    owner: Provider

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        names = list(self.owner.book.steps)
        self._json(200, {"object": "list", "data": [{"id": n, "object": "model"} for n in names]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/embeddings"):
            self._json(200, dialects.embeddings(body))
        elif path.endswith("/chat/completions"):
            self._answer(path, body, dialects.ChatCompletions(self.owner.stream_usage))
        elif path.endswith("/messages"):
            self._answer(path, body, anthropic_dialect.Messages())
        elif path.endswith("/responses") and self.owner.responses:
            self._answer(path, body, dialects.Responses(self.owner.book.talks))
        else:
            self._refuse(Refusal(404, "not_found", f"{path} is not supported here."))

    def _answer(self, path: str, body: dict[str, Any], dialect: dialects.Dialect) -> None:
        prompt = dialect.prompt(body)
        asked = Asked(path, str(body.get("model")), body, prompt, time.time())
        step = self.owner.step(asked)
        if isinstance(step, Refusal):
            asked.status = step.status
            self._refuse(step)
            return
        asked.status, asked.answer = 200, step.text
        if asked.stream:
            asked.usage = self._stream(dialect.events(body, prompt, step))
        else:
            whole = dialect.whole(body, prompt, step)
            asked.usage = whole.get("usage")
            self._json(200, whole)

    def _refuse(self, refusal: Refusal) -> None:
        if self.path.partition("?")[0].endswith("/messages"):
            self._json(refusal.status, anthropic_dialect.refusal(refusal.kind, refusal.message))
            return
        error = {"message": refusal.message, "type": refusal.kind, "code": refusal.code}
        self._json(refusal.status, {"error": error})

    def _json(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self._send(status, "application/json", str(len(data)))
        self._write(data)

    def _stream(self, events: Any) -> dict[str, Any] | None:
        """Send the events; the usage that stood in one of them."""
        usage: dict[str, Any] | None = None
        self._send(200, "text/event-stream", None)
        for name, data in events:
            usage = dialects.usage_in(data) or usage
            line = data if isinstance(data, str) else json.dumps(data)
            head = f"event: {name}\n" if name else ""
            if not self._write(f"{head}data: {line}\n\n".encode()):
                break
        return usage

    def _send(self, status: int, kind: str, length: str | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", length)
        self.end_headers()

    def _write(self, data: bytes) -> bool:
        """False where the client broke the stream off, as agents do once they have enough."""
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True
