"""The one thread that reads what people brought, oldest first."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import msgspec
from django.conf import settings
from django.db import connection

from ctxhealth.imports import limits
from ctxhealth.imports.errors import Broken, Refused, Stopped
from ctxhealth.imports.kinds import Bundle, kind_of
from ctxhealth.imports.session import Outcome, SessionImport
from ctxhealth.imports.source import Source
from ctxhealth.imports.spool import Spool, spool
from ctxhealth.readers.registry import HEAD_BYTES, Format
from ctxhealth.store import queries, writes
from ctxhealth.store.bundles import BadBundle, import_bundle
from ctxhealth.store.bundles.form import MOST_BYTES
from ctxhealth.store.queries.imports import ImportRow
from ctxhealth.store.through import AWAY, StoreBusy

IDLE_S = 30.0
AWAY_S = 1.0
STOP_S = 10.0
_KNOWN = "All of it was imported before: nothing was added."
_LOG = logging.getLogger(__name__)
_worker: ImportWorker | None = None


class ImportWorker:
    """Started with the server. ``poke`` wakes it; what waits stands in the database."""

    def __init__(self, folder: Spool | None = None) -> None:
        self._spool = folder or spool()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        global _worker
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(
                target=self._main, name="ctxhealth-imports", daemon=True
            )
            self._thread.start()
            _worker = self

    def stop(self) -> None:
        """Before the writer stops: what is being read goes on at the next start."""
        global _worker
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(STOP_S)
            self._thread = None
        if _worker is self:
            _worker = None

    def poke(self) -> None:
        self._wake.set()

    def settle(self) -> None:
        """What an earlier server left: go on with it, remove what nobody needs."""
        for name in writes.imports_settle(spooled=self._spool.names()):
            self._spool.remove(name)

    def run_next(self) -> bool:
        """Read one file to its end; False where none waits."""
        row = queries.import_next()
        if row is None:
            return False
        _Job(row, self._spool, self._stopping).run()
        return True

    def _main(self) -> None:
        settled = False
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                if not settled:
                    self.settle()
                    settled = True
                more = self.run_next()
            except (*AWAY, StoreBusy):
                self._stopping.wait(AWAY_S)
                continue
            except Exception:
                _LOG.exception("an import failed")
                more = False
            finally:
                connection.close()
            if not more:
                self._wake.wait(IDLE_S)


class _Job:
    """One file, from its first byte to what came of it."""

    def __init__(self, row: ImportRow, folder: Spool, stopping: threading.Event) -> None:
        self._row, self._spool, self._stopping = row, folder, stopping
        self._told = 0.0
        self._session: SessionImport | None = None

    def run(self) -> None:
        """Each file gets its answer; only a database that is away is raised, to try again."""
        try:
            self._read()
        except Stopped:
            writes.import_left(import_id=self._row.id)
            return
        except (*AWAY, StoreBusy):
            writes.import_left(import_id=self._row.id)
            raise
        except Refused as problem:
            self._end("refused", str(problem))
        except Broken as problem:
            self._end("failed", f"{problem} What was read before stands.")
        except OSError as error:
            _LOG.warning("an import cannot be read: %s", error)
            self._end("failed", "The server cannot read its copy of the file: bring it again.")
        except Exception as error:
            _LOG.exception("the reader failed on import %d", self._row.id)
            self._end("failed", self._said(error))
        self._spool.remove(self._row.spooled)

    def _read(self) -> None:
        row = self._row
        twin = queries.import_twin(row.sha256, row.id)
        if twin is not None:
            self._end("known", f"The same file was imported before, as {twin.name}.", twin.chat)
            return
        most = limits.UNPACKED_TIMES * settings.CTXHEALTH_IMPORT_MB * 1_000_000
        with Source(self._spool.path(row.spooled), most) as source:
            kind = kind_of(source.read(HEAD_BYTES))
            source.rewind()
            writes.import_started(import_id=row.id, what=kind.what)
            if isinstance(kind, Bundle):
                self._read_bundle(source)
            else:
                self._read_session(source, kind)

    def _read_bundle(self, source: Source) -> None:
        """Checked as a whole before anything is stored, so it must fit into memory."""
        data = source.read(MOST_BYTES + 1)
        try:
            brought = import_bundle(data, by=self._row.by or None)
        except BadBundle as problem:
            raise Refused(f"This bundle cannot be read: {problem}.") from None
        state, reason = ("done", "") if brought.new else ("known", _KNOWN)
        if brought.here:
            reason = "It was exported here: this is where it comes from."
        self._end(state, reason, brought.chat, incident=brought.incident,
                  events=brought.events, bytes_read=source.taken, chats=1)  # fmt: skip

    def _read_session(self, source: Source, kind: Format) -> None:
        siblings = frozenset(queries.import_names(self._row.batch))
        self._session = SessionImport(
            source, kind, name=self._row.name, siblings=siblings, progress=self._progress,
            stopping=self._stopping,
        )  # fmt: skip
        outcome = self._session.run()
        self._end(*_said(outcome), chat=outcome.chat, bytes_read=source.taken)

    def _progress(self, **counts: int) -> None:
        now = time.monotonic()
        if now >= self._told + limits.PROGRESS_S:
            self._told = now
            writes.import_progress(import_id=self._row.id, **counts)

    def _end(
        self, state: str, reason: str, chat: int | None = None, *, incident: int | None = None,
        **counts: int,
    ) -> None:  # fmt: skip
        troubles: list[dict[str, Any]] = []
        session = self._session
        if session is not None:
            troubles = [msgspec.to_builtins(trouble) for trouble in session.troubles.all()]
            counts = {**session.counts(), **counts}
            chat = chat if chat is not None else session.chat()
        writes.import_ended(
            import_id=self._row.id, state=state, reason=reason, chat=chat, incident=incident,
            troubles=troubles, **counts,
        )  # fmt: skip

    def _said(self, error: Exception) -> str:
        line = self._session.lines if self._session is not None else 0
        where = f" at line {line:,}" if line else ""
        return (
            f"The reader failed{where} ({type(error).__name__}); this is a fault of the server. "
            "What was read before stands."
        )


def _said(outcome: Outcome) -> tuple[str, str]:
    if outcome.known:
        return "known", _KNOWN
    return "done", ""


def poke() -> None:
    """Tell the worker of this process that something waits; without one it waits on."""
    if _worker is not None:
        _worker.poke()
