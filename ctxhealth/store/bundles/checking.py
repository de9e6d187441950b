"""A file that says it is a bundle: believed only after every part of it was looked at.

Everything is checked before anything is written: limits, sizes and types by the form, each event
by the decoder of the wire, the log as a whole by folding it once.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ctxhealth.core.changes import Changes
from ctxhealth.core.fold import Stamp, fold
from ctxhealth.core.incidents_model import IncidentView
from ctxhealth.core.model import State
from ctxhealth.core.rules import Rules
from ctxhealth.core.state import new_state
from ctxhealth.store.bundles.form import FORMAT, MOST_BYTES, VERSION, Bundle, BundleEvent, Label
from ctxhealth.store.intake import TOMBSTONE_CODE, kind_of
from ctxhealth.store.models.incidents import AUTOMATIC
from ctxhealth.store.redaction import redacted
from ctxhealth.store.writes.incidents import VERDICTS
from ctxhealth.wire import Event, decode_stored
from ctxhealth.wire.canonical import NotCanonical, canonicalise, loads
from ctxhealth.wire.events import Note

_BUNDLE: msgspec.json.Decoder[Bundle] = msgspec.json.Decoder(Bundle)
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, ValueError)
HEAD_BYTES = 400
MOST_LINKS = 500


class BadBundle(ValueError):
    """One sentence about what is wrong, and where."""


def looks_like_bundle(head: bytes) -> bool:
    """Whether a file that begins like this says it is a bundle."""
    start = head[:HEAD_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"{") and f'"{FORMAT}"'.encode() in start


def checked(data: bytes, rules: Rules) -> Bundle:
    """The bundle in ``data``. Raises BadBundle."""
    if len(data) > MOST_BYTES:
        raise BadBundle(f"it has {len(data):,} bytes, at most {MOST_BYTES:,} are read")
    _labelled(data)
    try:
        bundle = _BUNDLE.decode(data)
    except _UNREADABLE as error:
        raise BadBundle(f"not a whole bundle: {_short(error)}") from None
    _no_nul(bundle)
    _incident_fits(bundle)
    _commands_fit(bundle)
    _foldable(bundle, rules)
    return bundle


def event_of(line: BundleEvent) -> tuple[Event, str]:
    """The event and the body to store. Raises BadBundle."""
    where = f"event {line.chat_seq}"
    raw = line.body.encode()
    try:
        _, replaced = canonicalise(loads(raw))
        event = decode_stored(raw)
    except NotCanonical as error:
        raise BadBundle(f"{where}: {error.detail} at {error.path}") from None
    except _UNREADABLE as error:
        raise BadBundle(f"{where}: {_short(error)}") from None
    if replaced:
        raise BadBundle(f"{where}: holds characters that cannot be stored")
    event, body = redacted(event, raw)
    return event, body.decode()


def _labelled(data: bytes) -> None:
    try:
        label = msgspec.json.decode(data, type=Label)
    except _UNREADABLE as error:
        raise BadBundle(f"not JSON, or cut off: {_short(error)}") from None
    if label.format != FORMAT:
        raise BadBundle(f"no bundle: its format is not {FORMAT}")
    if label.version != VERSION:
        raise BadBundle(f"version {label.version!r:.20}: this server reads version {VERSION}")


def _no_nul(bundle: Bundle) -> None:
    """PostgreSQL holds no NUL in a text; in events it was replaced long before."""
    rest = msgspec.structs.replace(bundle, events=bundle.events[:1])
    if b"\\u0000" in msgspec.json.encode(rest):
        raise BadBundle("a text in it contains NUL")


def _incident_fits(bundle: Bundle) -> None:
    incident, last = bundle.incident, bundle.events[-1].chat_seq
    places = [incident.started_seq, incident.opened_seq, incident.closed_seq or last]
    if places != sorted(places) or places[-1] > last:
        raise BadBundle("incident: its events are out of order or beyond the end of the log")
    if incident.verdict not in VERDICTS:
        raise BadBundle("incident.verdict: not a verdict that this version knows")
    if incident.kind == AUTOMATIC and incident.state not in set(State):
        raise BadBundle("incident.state: not a state that this version knows")
    if incident.judged:
        try:
            view = msgspec.json.decode(incident.judged, type=IncidentView)
        except _UNREADABLE as error:
            raise BadBundle(f"incident.judged: {_short(error)}") from None
        if len(view.chain) > MOST_LINKS or len(view.commands) > MOST_LINKS:
            raise BadBundle(f"incident.judged: more than {MOST_LINKS} links")


def _commands_fit(bundle: Bundle) -> None:
    """What a page decodes of a command must be JSON, and flat enough to be shown."""
    for command in bundle.commands:
        for name, text in (("args", command.args), ("detail", command.detail or "null")):
            try:
                value, _ = canonicalise(loads(text.encode()))
            except NotCanonical as error:
                raise BadBundle(f"command {command.id}: {name}: {error.detail}") from None
            if name == "args" and not isinstance(value, dict):
                raise BadBundle(f"command {command.id}: args: must be an object")


def _foldable(bundle: Bundle, rules: Rules) -> None:
    state = new_state(bundle.chat.external_id, bundle.chat.opened_at)
    for line, event, _ in events_of(bundle):
        try:
            fold(state, event, Stamp(line.chat_seq, line.at), Changes(), rules)
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            what = f"{line.type} cannot be followed: {type(error).__name__}"
            raise BadBundle(f"event {line.chat_seq}: {what}") from None


def events_of(bundle: Bundle, after: int = 0) -> Iterator[tuple[BundleEvent, Event, str]]:
    """(line, event, body to store) of each event after ``after``, each one checked."""
    for place, line in enumerate(bundle.events, start=1):
        if line.chat_seq != place:
            raise BadBundle(f"event {line.chat_seq}: the log must go from 1 without a hole")
        if place > after:
            event, body = event_of(line)
            _matches(bundle.chat.external_id, line, event)
            yield line, event, body


def _matches(chat: str, line: BundleEvent, event: Event) -> None:
    where = f"event {line.chat_seq}"
    if line.tombstone:
        if not isinstance(event, Note) or event.code != TOMBSTONE_CODE:
            raise BadBundle(f"{where}: a tombstone must be the note of a rejection")
    elif kind_of(event) != line.type:
        raise BadBundle(f"{where}: its body is of the type {kind_of(event):.40}")
    if event.chat != chat:
        raise BadBundle(f"{where}: belongs to another chat")
    if line.type.startswith("server.") and not line.by_server:
        raise BadBundle(f"{where}: only a server writes {line.type:.40}")


def _short(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."
