"""Files that people bring: taken on, read by the server's own worker, and what came of each."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from ctxhealth.store.clock import now_ms
from ctxhealth.store.import_place import Place
from ctxhealth.store.intake import StreamHandle
from ctxhealth.store.models import Agent, Import, ImportPlace, Stream
from ctxhealth.store.models.imports import OPEN_STATES
from ctxhealth.store.projects import default_project
from ctxhealth.store.through import call, soon
from ctxhealth.store.writes.audit import audit, name_of

# A file that the server did not survive twice is not tried a third time.
MOST_RESUMES = 2
MOST_WAITING = 200
KEPT = 5_000
CAPABILITIES = '{"read_only":true,"commands":[],"fallback":"none","text":"excerpt"}'


class Refusal(NamedTuple):
    """A file that is not even queued, and why."""

    reason: str


def import_queue(
    *,
    batch: str,
    name: str,
    size: int,
    sha256: str = "",
    spooled: str = "",
    refused: Refusal | None = None,
    by: Any = None,
    ip: str = "",
) -> int:
    """Note a file that was brought, to be read or refused at once; its number.

    A queue that is full refuses as well: the caller looks at the row's state.
    """
    return call(_queue, batch, name, size, sha256, spooled, refused, by, ip)


def import_started(*, import_id: int, what: str) -> None:
    call(_started, import_id, what)


def import_progress(*, import_id: int, **counts: int) -> None:
    """Any of bytes_read, lines, events, unreadable, chats; nobody waits for it."""
    soon(_change, import_id, counts)


def import_ended(
    *,
    import_id: int,
    state: str,
    reason: str = "",
    chat: int | None = None,
    incident: int | None = None,
    troubles: list[dict[str, Any]] | None = None,
    **counts: int,
) -> None:
    """What came of it: done, known, refused, failed or interrupted."""
    fields: dict[str, Any] = {**counts, "state": state, "reason": reason[:2_000]}
    fields |= {"chat_id": chat, "incident": incident, "spooled": "", "ended_at": now_ms()}
    if troubles:
        fields["troubles"] = msgspec.json.encode(troubles).decode()
    call(_change, import_id, fields)


def import_left(*, import_id: int) -> None:
    """The server stops while it reads this one: it goes on at the next start."""
    call(_change, import_id, {"state": "queued"})


def imports_settle(*, spooled: set[str]) -> list[str]:
    """At the start: what was being read goes on where its file is still there.

    Returns the files in the spool that nobody needs.
    """
    return call(_settle, spooled)


def import_stream(*, product: str, session: str) -> StreamHandle:
    """Where a session's events go: one agent per product, one stream per session."""
    return call(_stream, product, session)


def import_place_keep(*, stream: StreamHandle, session: str, place: Place) -> None:
    call(_keep, stream, session, place)


def agent_of(product: str) -> str:
    """The agent under whose name a product's imported sessions stand."""
    return f"{product} (imported)"


def _queue(
    batch: str, name: str, size: int, sha256: str, spooled: str, refused: Refusal | None,
    by: Any, ip: str,
) -> int:  # fmt: skip
    now = now_ms()
    if refused is None and Import.objects.filter(state__in=OPEN_STATES).count() >= MOST_WAITING:
        refused = Refusal(f"{MOST_WAITING} files wait already: bring it again when they are read.")
    made = Import.objects.create(
        project=default_project(),
        batch=batch,
        by=by if getattr(by, "pk", None) is not None else None,
        by_name=name_of(by),
        name=name[:300],
        spooled="" if refused else spooled,
        size=size,
        sha256=sha256,
        state="refused" if refused else "queued",
        reason=refused.reason if refused else "",
        created_at=now,
        ended_at=now if refused else None,
    )
    Import.objects.filter(id__lte=made.pk - KEPT).exclude(state__in=OPEN_STATES).delete()
    result = "refused" if refused else "queued"
    detail = {"size": size, "sha256": sha256}
    audit(action="import.file", result=result, by=by, target=name, ip=ip, detail=detail,
          reason=refused.reason if refused else "")  # fmt: skip
    return made.pk


def _started(import_id: int, what: str) -> None:
    _change(import_id, {"state": "reading", "what": what[:100], "started_at": now_ms()})


def _change(import_id: int, fields: dict[str, Any]) -> None:
    Import.objects.filter(id=import_id).update(**fields)


def _settle(spooled: set[str]) -> list[str]:
    needed = set()
    for row in Import.objects.filter(state__in=OPEN_STATES):
        resumed = row.resumed + (row.state == "reading" or row.started_at is not None)
        if row.spooled in spooled and resumed <= MOST_RESUMES:
            needed.add(row.spooled)
            Import.objects.filter(id=row.pk).update(state="queued", resumed=resumed)
            continue
        why = "its file is gone" if row.spooled not in spooled else "the server ended at it twice"
        reason = f"The server stopped while this waited or was read, and {why}: bring it again."
        _change(row.pk, {"state": "interrupted", "reason": reason, "ended_at": now_ms(),
                         "spooled": ""})  # fmt: skip
    return sorted(spooled - needed)


def _stream(product: str, session: str) -> StreamHandle:
    now = now_ms()
    agent, _ = Agent.objects.get_or_create(
        project=default_project(),
        name=agent_of(product),
        defaults={
            "created_at": now,
            "runtime": product,
            "caps": CAPABILITIES,
            "imported": True,
        },
    )
    # The session's id may be as long as an epoch may be; it stands there alone.
    stream, _ = Stream.objects.get_or_create(
        agent=agent, epoch=session[:200], defaults={"created_at": now}
    )
    return StreamHandle(agent.project_id, agent.pk, stream.pk, agent.name, read_only=True)


def _keep(stream: StreamHandle, session: str, place: Place) -> None:
    ImportPlace.objects.update_or_create(
        agent_id=stream.agent,
        session=session[:200],
        defaults={**place._asdict(), "stream_id": stream.stream, "at": now_ms()},
    )
