"""What the fake host answers, operation by operation, in the shapes of the real one."""

from __future__ import annotations

import base64
import json
import threading
import uuid
from typing import TYPE_CHECKING, Any

from tests.agents.maka.script import Session

if TYPE_CHECKING:
    from tests.agents.maka.host import Peer

Frame = dict[str, Any]
_SUBSCRIPTIONS = 16
_TRACE_BYTES = 48 * 1024


class Refused(Exception):
    """An error answer: code and message."""


class Operations:
    """``sessions`` by id; ``grants`` are the operations that the credential may ask for."""

    compatibility: int
    grants: tuple[str, ...]
    epoch_id: str
    others: int
    sessions: dict[str, Session]
    peers: list[Peer]

    def answer(self, peer: Peer, operation: str, given: Frame) -> Any:
        if operation not in self.grants:
            raise Refused("unauthorized", f"Operation {operation} is not granted")
        handle = getattr(self, "_" + operation.replace(".", "_"))
        return handle(peer, given)

    def _of(self, given: Frame) -> Session:
        found = self.sessions.get(given["sessionId"])
        if found is None:
            raise Refused("not_found", "Session was not found")
        return found

    def _host_status(self, peer: Peer, given: Frame) -> Frame:
        return {"hostEpoch": self.epoch_id, "compositionId": "maka.interactive",
                "compositionRevision": "3", "state": "ready", "activeOperations": 1,
                "connections": len(self.peers) + self.others, "activeResidencies": 0}  # fmt: skip

    def _session_catalog_query(self, peer: Peer, given: Frame) -> Frame:
        if given["kind"] == "get":
            found = self.sessions.get(given["sessionId"])
            return {"kind": "session", "session": found.item() if found else None}
        at = int(given.get("cursor") or 0)
        names = sorted(self.sessions)[at : at + 32]
        more = at + 32 < len(self.sessions)
        return {"kind": "page", "revision": "sha256:0",
                "sessions": [self.sessions[name].item() for name in names],
                "nextCursor": str(at + 32) if more else None}  # fmt: skip

    def _subscription_open(self, peer: Peer, given: Frame) -> Frame:
        session = self._of(given)
        with peer.lock:
            if len(peer.subscriptions) >= _SUBSCRIPTIONS:
                raise Refused("operation_conflict", "subscription limit reached")
            name = uuid.uuid4().hex
            peer.subscriptions[name] = [session.id, 1]
        page = {
            "kind": "page", "sessionId": session.id, "direction": "older", "rawBytes": 0,
            "throughSequence": session.through, "fragments": [], "nextCursor": None,
        }  # fmt: skip
        return {
            "hostEpoch": self.epoch_id, "subscriptionId": name, "nextSequence": 1,
            "snapshot": session.snapshot(), "activeAssistantStreams": [],
            "transcript": {"throughSequence": session.through, "overlayMessageCount": 0,
                           "durable": {**page, "source": "durable"},
                           "overlay": {**page, "source": "overlay"}},
        }  # fmt: skip

    def _subscription_close(self, peer: Peer, given: Frame) -> Frame:
        if peer.subscriptions.pop(given["subscriptionId"], None) is None:
            raise Refused("not_found", "Subscription was not found")
        return {"subscriptionId": given["subscriptionId"]}

    def _session_transcript_page(self, peer: Peer, given: Frame) -> Frame:
        entry = peer.subscriptions.get(given["subscriptionId"])
        if entry is None:
            raise Refused("not_found", "Subscription was not found")
        session = self.sessions[entry[0]]
        through = given["throughSequence"]
        after = given["anchorSequence"] if given["anchorSequence"] is not None else -1
        skip = 0
        if given["cursor"]:
            after, skip = map(int, given["cursor"].split("."))
        fragments, cursor = _pages(session, through, after, skip, given["maxBytes"])
        return {"kind": "page", "sessionId": session.id, "source": "durable",
                "direction": "newer", "throughSequence": through,
                "rawBytes": sum(len(base64.b64decode(f["data"])) for f in fragments),
                "fragments": fragments, "nextCursor": cursor}  # fmt: skip

    def _turn_query(self, peer: Peer, given: Frame) -> Frame:
        found = self._of(given).snapshots.get(given["turnId"])
        if found is None:
            raise Refused("not_found", "Turn was not admitted")
        return found

    def _turn_stop(self, peer: Peer, given: Frame) -> Frame:
        session = self._of(given)
        found = session.snapshots.get(given["turnId"])
        if found is None:
            raise Refused("not_found", "Turn was not admitted")
        if found["status"] in ("completed", "failed", "cancelled"):
            return found
        session.end(given["turnId"], "aborted")
        return session.snapshots[given["turnId"]]

    def _context_diagnostics_query(self, peer: Peer, given: Frame) -> Frame:
        found = self._of(given).diagnostics
        return found or {"status": "unavailable", "reason": "no_completed_request"}

    def _execution_inspect_query(self, peer: Peer, given: Frame) -> Frame:
        session = self._of(given)
        if given["kind"] == "turn_trace":
            turn = session.traces.get(given["turnId"])
            if turn is None:
                raise Refused("not_found", "Turn trace was not found")
            if len(json.dumps(turn)) > _TRACE_BYTES:
                raise Refused("invalid_request", "Turn trace exceeds the live Host result limit")
            return {"kind": "turn_trace", "sessionId": session.id,
                    "turn": json.loads(json.dumps(turn))}  # fmt: skip
        found = session.checkpoints.get(given["agentRunId"], [])
        written = [{"checkpointId": name, "validation": "shape_valid"} for name in found]
        document = {"kind": "agent_run", "compactionCheckpoints": written, "diagnostics": []}
        return {"kind": "agent_run", "document": document}

    def _context_compact(self, peer: Peer, given: Frame) -> Frame:
        session, turn = self._of(given), given["turnId"]
        if turn not in session.snapshots:
            root = session.root
            if root is not None and root["status"] not in ("completed", "failed", "cancelled"):
                raise Refused("session_busy", "Session already has an active or pending root Turn")
            session.begin_bare(turn)
            threading.Thread(target=session.on_compact, args=(turn,), daemon=True).start()
        snapshot = session.snapshots[turn]
        return snapshot if self.compatibility < 100 else {"kind": "started", "turn": snapshot}


def _pages(
    session: Session, through: int, after: int, skip: int, most: int
) -> tuple[list[Frame], str | None]:
    """Fragments newer than ``after``, and of the message at it what lies beyond ``skip``."""
    fragments: list[Frame] = []
    room = most
    for sequence, message in session.messages:
        start = skip if sequence == after else 0
        if sequence > through or sequence < after or (sequence == after and not skip):
            continue
        data = json.dumps(message).encode()
        while start < len(data):
            if room <= 0 or len(fragments) >= 256:
                before = fragments[-1]["sequence"]
                return fragments, f"{sequence}.{start}" if start else f"{before}.0"
            part = data[start : start + room]
            fragments.append({
                "kind": "durable", "sequence": sequence, "byteOffset": start,
                "totalBytes": len(data), "payloadDigest": None,
                "data": base64.b64encode(part).decode(),
            })  # fmt: skip
            start += len(part)
            room -= len(part)
    return fragments, None
