"""A session of the fake host, and what may happen in it, in the order of the real one.

A request is settled, and said so, before its text stands in the transcript; a turn's usage and
its end come last; a turn that fails has no usage; every turn ends with a note that says nothing.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.agents.maka.host import FakeHost

Frame = dict[str, Any]
WINDOW = 16_000
_numbers = itertools.count(1)


class Session:
    def __init__(self, host: FakeHost, id: str, /, **facts: Any) -> None:
        self.id, self._host = id, host
        self.facts = {"name": f"Session {id}", "window": WINDOW, "now": None, **facts}
        self.now: int = self.facts["now"] or int(time.time() * 1000) - 120_000
        self.created = self.now
        self.messages: list[tuple[int, Frame]] = []
        self.traces: dict[str, Frame] = {}
        self.checkpoints: dict[str, list[str]] = {}
        self.snapshots: dict[str, Frame] = {}
        self.diagnostics: Frame | None = None
        self.root: Frame | None = None
        self.archived = False
        self._revision = 1
        self._sequence = -1
        self._lock = threading.RLock()
        self.compaction: list[Any] = []

    # -- as the host tells it

    @property
    def through(self) -> int | None:
        return self.messages[-1][0] if self.messages else None

    def item(self) -> Frame:
        parent = self.facts.get("parent")
        running = [self.root["turnId"]] if self.root and self._runs() else []
        return {
            "id": self.id, "revision": self._revision, "createdAt": self.created,
            "workspace": {"target": {"kind": "project", "projectId": "p"}, "hostCwd": "/w"},
            "lastUsedAt": self.facts.get("used") or int(time.time() * 1000),
            "name": self.facts["name"], "isFlagged": False, "isArchived": self.archived,
            "labels": [], "labelsTruncated": False, "hasUnread": False,
            "lastMessagePreview": "SECRET PREVIEW", "status": "active", "backend": "ai-sdk",
            "liveRunState": {"schemaVersion": 1, "runningTurnIds": running},
            "llmConnectionSlug": "fake", "connectionLocked": True, "model": "fake-chat",
            "permissionMode": "bypass", "collaborationMode": "agent",
            "orchestrationMode": "default",
            **({"parentSessionId": parent,
                "subagent": {"parentSessionId": parent, "agentName": "Explore"}} if parent else {}),
        }  # fmt: skip

    def snapshot(self) -> Frame:
        return {
            "schemaVersion": 4, "projectionRevision": self._revision, "rootTurn": self.root,
            "session": {"sessionId": self.id, "metadataRevision": self._revision,
                        "status": "running" if self._runs() else "active",
                        "createdAt": self.created, "lastUsedAt": self.now, "isArchived": False},
            "goal": None, "interactions": {"pending": []},
            "queue": {"hostEpoch": self._host.epoch_id, "queueRevision": 0, "steering": [],
                      "followup": []},
        }  # fmt: skip

    def _runs(self) -> bool:
        return self.root is not None and self.root["status"] in ("running", "waiting_for_user")

    # -- what happens

    def begin(self, turn: str, text: str = "please") -> str:
        """The user says something."""
        self._root(turn, "running")
        self._write(turn, "user", text=text)
        self._state(turn, "running")
        return turn

    def begin_bare(self, turn: str) -> None:
        self._root(turn, "running")
        self._state(turn, "running")

    def request(
        self, turn: str, tokens: int | None, output: int = 20, *, finish: str = "stop",
        kind: str = "main", **attempt: Any,
    ) -> Frame:  # fmt: skip
        """A provider request, settled. ``attempt`` may give status, errorClass, httpStatus."""
        with self._lock:
            started = self._tick()
            entry: Frame = {
                "attemptId": f"{self.id}-attempt-{next(_numbers)}", "attempt": 0,
                "status": "completed", "startedAt": started, "completedAt": self._tick(),
                "latencyMs": 100, "finishReason": finish, "contextWindow": self.facts["window"],
                "costBasis": "unpriced", "usageBasis": "reported", "inputTokens": tokens,
                "outputTokens": output, "cacheReadInputTokens": 0, **attempt,
            }  # fmt: skip
            if entry["status"] != "completed" or tokens is None:
                entry["usageBasis"] = "missing"
                for key in ("inputTokens", "outputTokens", "finishReason", "cacheReadInputTokens"):
                    entry.pop(key)
            steps = self._trace(turn)["steps"]
            steps.append({
                "kind": "model_call", "id": f"step-{next(_numbers)}", "turnId": turn,
                "runId": f"run-{turn}", "startedAt": started, "endedAt": entry["completedAt"],
                "durationMs": 100, "callKind": kind, "providerId": "openai-compatible",
                "modelId": "fake-chat", "connectionSlug": "fake", "step": 0, "attempts": [entry],
                "status": entry["status"],
            })  # fmt: skip
            if kind == "main" and entry["status"] == "completed":
                self._compose(entry)
        self._host.push(self.id, "session_domain_changed", sessionId=self.id, domain="usage")
        return entry

    def overflow(self, turn: str) -> Frame:
        return self.request(
            turn, None, status="failed", errorClass="ContextLength", httpStatus=400,
            providerCode="context_length_exceeded", retryable=False,
        )  # fmt: skip

    def fold(self, turn: str, tokens: int = 9_000, output: int = 296, wrote: bool = True) -> str:
        """A summarizer request; ``wrote``: its summary became a checkpoint."""
        name = f"hcheckpoint-{self.id}-{next(_numbers)}"
        if wrote:
            self.checkpoints.setdefault(f"run-{turn}", []).append(name)
        self.request(turn, tokens, output, kind="history_compact")
        return name

    def tool(self, turn: str, chars: int = 4_000, name: str = "Bash") -> None:
        """One call and its result."""
        call = f"{self.id}-call-{next(_numbers)}"
        self._write(turn, "tool_call", id=call, toolName=name, args={"command": "x" * 40})
        self._write(turn, "tool_result", toolUseId=call, isError=False, content="y" * chars)

    def say(self, turn: str, text: str = "Here it is.") -> None:
        self._write(turn, "assistant", text=text, modelId="fake-chat")

    def waits(self, turn: str) -> None:
        self._root(turn, "waiting_for_user")

    def resumes(self, turn: str) -> None:
        self._root(turn, "running")

    def end(
        self, turn: str, status: str = "completed", *, decisions: list[Frame] | None = None,
        error: str | None = None, message: str | None = None, before: int | None = None,
        after: int | None = None, prior: int | None = None, usage: bool = True,
    ) -> None:  # fmt: skip
        if status == "completed" and usage:
            budget: Frame = {
                "enabled": True, "compactionDecisions": decisions or [],
                "estimatedTokensBefore": before, "estimatedTokensAfter": after,
            }  # fmt: skip
            segments = [{"kind": "prior_history", "chars": 0, "estimatedTokens": prior or 0}]
            given = {"contextBudget": budget} if decisions is not None else {}
            self._write(turn, "token_usage", input=0, output=0, promptSegments=segments, **given)
        if any(each["decision"] == "failedOpen" for each in decisions or []):
            self._write(turn, "system_note", kind="context_compaction_failed_open")
        self._state(turn, status, error)
        self._write(turn, "system_note", kind="session_resume")
        ended = {"completed": {}, "aborted": {"abortSource": "renderer.stop_button"},
                 "failed": {"failureClass": error}}[status]  # fmt: skip
        if message:
            ended["failureMessage"] = message
        self._root(turn, "cancelled" if status == "aborted" else status, **ended)

    def on_compact(self, turn: str) -> None:
        """What ``context.compact`` comes to: the next of ``compaction``, each a callable."""
        self.compaction.pop(0)(turn)

    # -- bookkeeping

    def _tick(self, ms: int = 100) -> int:
        self.now += ms
        return self.now

    def _trace(self, turn: str) -> Frame:
        return self.traces.setdefault(
            turn,
            {"turnId": turn, "runId": f"run-{turn}", "startedAt": self.now, "endedAt": self.now,
             "durationMs": 0, "steps": []},
        )  # fmt: skip

    def _write(self, turn: str, type: str, /, **fields: Any) -> None:
        with self._lock:
            self._sequence += 1 if self._host.compatibility < 100 else 3
            message = {"type": type, "id": f"{self.id}-m{self._sequence}", "turnId": turn,
                       "ts": self._tick(), **fields}  # fmt: skip
            self.messages.append((self._sequence, message))
        self._host.push(
            self.id, "transcript_advanced", sessionId=self.id, throughSequence=self._sequence
        )
        self._revision += 1
        self._host.broadcast("session.catalog.changed", revision=self._revision, sessionId=self.id)

    def _state(self, turn: str, status: str, error: str | None = None) -> None:
        kept = {"partialOutputRetained": False} if self._host.compatibility < 100 else {}
        failed = {"errorClass": error} if error else {}
        self._write(turn, "turn_state", status=status, **failed, **kept)

    def _root(self, turn: str, status: str, **more: Any) -> None:
        self._trace(turn)
        terminal = (
            {"terminalEventId": "e"} if status in ("completed", "failed", "cancelled") else {}
        )
        self.root = self.snapshots[turn] = {
            "sessionId": self.id, "turnId": turn, "runId": f"run-{turn}", "status": status,
            **terminal, **more,
        }  # fmt: skip
        self._host.push(self.id, "session_projection", snapshot=self.snapshot())

    def _compose(self, entry: Frame) -> None:
        sizes = {"system_instructions": 600, "tool_definitions": 12_000,
                 "messages": 4 * entry["inputTokens"], "other": 2} if entry.get(
                     "inputTokens") else {}  # fmt: skip
        self.diagnostics = {
            "status": "available", "providerId": "openai-compatible", "modelId": "fake-chat",
            "completedAt": entry["completedAt"], "inputTokens": entry.get("inputTokens"),
            "cacheReadInputTokens": 0, "contextWindow": self.facts["window"],
            "composition": {"segments": [
                {"kind": kind, "bytes": size} for kind, size in sizes.items()
            ]},
        }  # fmt: skip
