"""``POST /api/v1/events``: NDJSON for those who cannot hold a socket.

The same token, streams, dedupe and tombstones as the socket, and an answer per event. Nothing is
answered before its commit.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import Future
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from ctxhealth.ingest.counting import count_here
from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.store.intake import Intake, Receipt, StreamHandle, intake_of, tombstone_of
from ctxhealth.store.through import AWAY, StoreBusy, installed, submit_inline
from ctxhealth.store.writer import Writer
from ctxhealth.wire import Reject, decode_event, limits
from ctxhealth.wire.frames import Capabilities, Hello

BODY_BYTES = limits.INFLIGHT_BYTES
LINES = limits.INFLIGHT_EVENTS
WAIT_S = 30.0
# While the writer says that it cannot write, nobody waits longer than this.
BUSY_WAIT_S = 2.0
RETRY_AFTER_S = 1
_OBJECT = re.compile(rb"^\s*\{")


class BadRequest(Exception):
    """What is wrong with the request as a whole."""

    def __init__(self, status: int, code: str, field: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.field, self.detail = status, code, field, detail


@csrf_exempt
def events(request: HttpRequest) -> JsonResponse:
    """Headers ``Ctxhealth-Agent``, ``Ctxhealth-Epoch`` and, where events carry no seq,
    ``Ctxhealth-First-Seq``; one event per line."""
    try:
        stream, receipt, intakes = _taken(request)
    except BadRequest as problem:
        error = {"code": problem.code, "field": problem.field, "detail": problem.detail}
        response = JsonResponse({"error": error}, status=problem.status)
        if problem.status == 503:
            response["Retry-After"] = str(RETRY_AFTER_S)
        return response
    answer = {
        "epoch": stream.epoch,
        "acked": receipt.upto,
        "results": [_result(intake, receipt) for intake in intakes],
    }
    if receipt.resend is not None:
        return JsonResponse({**answer, "resend_from": receipt.resend}, status=409)
    return JsonResponse(answer)


def _taken(request: HttpRequest) -> tuple[StreamHandle, Receipt, list[Intake]]:
    try:
        return _take(request)
    except StoreBusy as error:
        raise BadRequest(503, "busy", "", str(error)) from None
    except AWAY:
        text = "the database does not answer; send again, nothing is stored twice"
        raise BadRequest(503, "busy", "", text) from None


def _take(request: HttpRequest) -> tuple[StreamHandle, Receipt, list[Intake]]:
    if request.method != "POST":
        raise BadRequest(405, "method", "method", "POST events here")
    token = _token(request)
    agent, epoch = _header(request, "Agent"), _header(request, "Epoch")
    if token.agent_name is not None and token.agent_name != agent:
        raise BadRequest(403, "scope", "Ctxhealth-Agent", "the token belongs to another agent")
    intakes = _intakes(_lines(request), _first_seq(request))
    stream = _stream(token.project, agent, epoch)
    count_here(stream, intakes)
    return stream, _submit(stream, intakes), intakes


def _token(request: HttpRequest) -> queries.TokenRow:
    for name in ("Origin", "Cookie"):
        if request.headers.get(name):
            raise BadRequest(403, "browser", name, "agents send neither Origin nor Cookie")
    given = request.headers.get("Authorization", "")
    bearer = given[7:].strip() if given[:7].lower() == "bearer " else ""
    now = now_ms()
    token = queries.token_check(bearer, now)
    if token is None:
        raise BadRequest(401, "token", "Authorization", "unknown, expired or revoked token")
    if "ingest" not in token.scopes:
        raise BadRequest(403, "scope", "Authorization", "the token lacks the scope ingest")
    writes.token_seen(token_id=token.id, last_used_at=token.last_used_at, now=now)
    return token


def _header(request: HttpRequest, name: str) -> str:
    field = f"Ctxhealth-{name}"
    value = request.headers.get(field, "")
    if not 1 <= len(value) <= 200 or not value.isprintable():
        raise BadRequest(422, "schema", field, "1 to 200 printable characters are needed")
    return value


def _first_seq(request: HttpRequest) -> int | None:
    field = "Ctxhealth-First-Seq"
    value = request.headers.get(field)
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or not 1 <= int(value[:17]) < 2**53:
        raise BadRequest(422, "schema", field, "an integer from 1 is needed")
    return int(value)


def _lines(request: HttpRequest) -> list[bytes]:
    length = request.headers.get("Content-Length", "")
    if length.isdigit() and int(length) > BODY_BYTES:
        raise BadRequest(413, "too_big", "body", f"at most {BODY_BYTES} bytes at once")
    body = request.read(BODY_BYTES + 1)
    if len(body) > BODY_BYTES:
        raise BadRequest(413, "too_big", "body", f"at most {BODY_BYTES} bytes at once")
    lines = [line for line in body.split(b"\n") if line.strip()]
    if not lines:
        raise BadRequest(422, "schema", "body", "no event in it: one JSON object a line")
    if len(lines) > LINES:
        raise BadRequest(413, "too_big", "body", f"at most {LINES} events at once")
    return lines


def _intakes(lines: list[bytes], first: int | None) -> list[Intake]:
    intakes: list[Intake] = []
    for index, line in enumerate(lines):
        expected = intakes[-1].seq + 1 if intakes else first
        if first is not None and b'"seq"' not in line:
            line = _OBJECT.sub(b'{"seq":%d,' % (first + index), line, count=1)
        try:
            intakes.append(intake_of(decode_event(line.strip())))
        except Reject as problem:
            seq = expected if expected is not None else problem.seq
            if seq is None:
                raise BadRequest(
                    422, problem.code, "body", f"line 1: {problem.detail} (and it has no seq)"
                ) from None
            intakes.append(tombstone_of(problem, line, seq, now_ms()))
    return intakes


def _stream(project: int, agent: str, epoch: str) -> StreamHandle:
    known = queries.stream_find(project, agent, epoch)
    if known is not None:
        return known
    hello = Hello(
        protocols=[limits.PROTOCOL], agent=agent, epoch=epoch, caps=Capabilities(), sdk="http"
    )
    return writes.agent_connect(project=project, hello=hello, fence=False).stream


def _submit(stream: StreamHandle, intakes: list[Intake]) -> Receipt:
    writer = installed()
    if writer is None or not writer.running:
        return submit_inline(stream, intakes)
    answer: Future[Receipt] = Future()
    if not writer.submit_events(stream, None, intakes, answer.set_result):
        raise StoreBusy("the server has too much to write; send again")
    return _awaited(writer, answer)


def _awaited(writer: Writer, answer: Future[Receipt]) -> Receipt:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return answer.result(BUSY_WAIT_S)
        except TimeoutError:
            if writer.busy is not None or time.monotonic() >= until:
                text = "no answer from the database yet; send again, nothing is stored twice"
                raise StoreBusy(text) from None


def _result(intake: Intake, receipt: Receipt) -> dict[str, Any]:
    seq = intake.seq
    if receipt.resend is not None and seq >= receipt.resend:
        return {"seq": seq, "status": "gap"}
    if seq <= receipt.before:
        return {"seq": seq, "status": "conflict" if seq in receipt.conflicting else "duplicate"}
    if intake.rejected is not None:
        why = intake.rejected
        return {
            "seq": seq,
            "status": "rejected",
            "code": why.code,
            "path": why.path,
            "detail": why.detail,
        }
    return {"seq": seq, "status": "stored"}
