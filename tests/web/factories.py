"""Chats as the core would show them, built by hand: the three incidents, and ordinary life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxhealth.core.model import (
    Advice,
    AttemptBrief,
    AttemptView,
    Block,
    Candidate,
    ChatDetail,
    ChatSummary,
    Connection,
    FindingBrief,
    FindingView,
    Headroom,
    HeavyItem,
    HistoryLoad,
    LatchBrief,
    LatchView,
    Outcome,
    Reading,
    Relief,
    Segment,
    Severity,
    Source,
    State,
    StepView,
    Structure,
    SummarizerView,
    TriggerSource,
    TriggerView,
    Window,
    WindowSource,
)
from ctxhealth.store.queries import CommandRow

NOW = 1_796_062_500_000  # 2026-11-30T18:15:00Z
MINUTE = 60_000
ALL_KINDS = (
    "compact_fallback", "clear_latch", "compact_summarize", "continue", "snapshot",
    "restore_backup",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FakeChat:
    """Stands for ``queries.BoardRow`` and ``queries.ChatRow``, which tests of pure rendering
    need no database for."""

    id: int
    agent: str
    external_id: str
    summary: ChatSummary
    owner: str = ""
    grouped: bool = False
    version: int = 1
    runtime: str = "demo"
    opened_at: int = NOW - 90 * MINUTE
    fallback: str = "engine"
    parent: int | None = None
    chat_seq: int = 100


def command(**changes: Any) -> CommandRow:
    fields: dict[str, Any] = {
        "id": "0190aaaa-0000-7000-8000-000000000001",
        "chat": 1,
        "chat_external": "chat-az",
        "agent_id": 1,
        "agent": "worker-3",
        "kind": "compact_fallback",
        "args": {},
        "state": "queued",
        "state_reason": "",
        "open": True,
        "mutating": True,
        "reason": "stalled at 140,261",
        "by": "ada",
        "created_at": NOW - 2 * MINUTE,
        "deliver_by": NOW - MINUTE,
        "lease_s": 600,
        "lease_until": None,
        "sent_at": None,
        "received_at": None,
        "started_at": None,
        "ended_at": None,
        "cancel_asked_at": None,
        "before": None,
        "after": None,
        "backup": "",
        "detail": None,
        "expected_epoch": "e1",
        "expected_compaction": 3,
        "expected_latch": "",
    }
    return CommandRow(**{**fields, **changes})


def window(value: int, source: WindowSource = WindowSource.TABLE) -> Window:
    return Window(
        value=value,
        source=source,
        candidates=(Candidate(source=source, value=value, detail="by model id"),),
    )


def healthy(tokens: int = 61_240, size: int = 200_000, **changes: Any) -> ChatSummary:
    """A chat at ``tokens`` in a window of ``size``; any field can be replaced."""
    budget, trigger = size - 4_096, int(size * 0.8)
    system, tools = min(6_400, tokens // 8), min(3_100, tokens // 12)
    current = tokens // 6
    fields: dict[str, Any] = {
        "title": "refactor the billing exporter",
        "model": "claude-sonnet-4-5",
        "provider": "anthropic",
        "runtime": "demo",
        "state": State.HEALTHY,
        "since": NOW - 40 * MINUTE,
        "headline": "Healthy.",
        "load": Reading(value=tokens, source=Source.PROVIDER, at=NOW - 4_000, request="r-31",
                        chat_seq=96),
        "window": window(size),
        "reserve": 4_096,
        "budget": budget,
        "trigger": TriggerView(value=trigger, source=TriggerSource.DECLARED, on_strip=trigger),
        "headroom": Headroom(trigger=trigger - tokens, budget=budget - tokens,
                             window=size - tokens),
        "forecast": 14,
        "segments": (
            Segment(kind="system", tokens=system),
            Segment(kind="tools", tokens=tools),
            Segment(kind="bulks", tokens=tokens // 10),
            Segment(kind="topics", tokens=tokens - system - tools - tokens // 10 - current),
            Segment(kind="current", tokens=current),
        ),
        "requests": 31,
        "turns": 9,
        "compactions": 1,
        "last_compaction": AttemptBrief(outcome=Outcome.REDUCED, before=158_200, after=49_761,
                                        at=NOW - 25 * MINUTE, relief=Relief.RELIEVED),
        "last_reply_at": NOW - 4_000,
        "trend": (*range(30_000, 61_500, 900), tokens),
        "opened_at": NOW - 90 * MINUTE,
        "last_event_at": NOW - 2_000,
        "command_kinds": ALL_KINDS,
        "calibration": 0.98,
    }  # fmt: skip
    return ChatSummary(**{**fields, **changes})


def agent_zero() -> ChatSummary:
    """Incident 1: the utility model answers nothing, compression stalls, the turn was ended."""
    sentence = (
        "Stopped: 3 compactions freed 0 of 140,261 history tokens because the utility model "
        "answers nothing; 5 unusable replies ended the turn; the user has waited 12 min. "
        "Force a fallback, then continue."
    )
    return healthy(
        149_761,
        title="deploy-bot nightly migration",
        model="glm-5.3-flash",
        provider="zai",
        runtime="agent-zero",
        state=State.STOPPED,
        severity=Severity.CRITICAL,
        since=NOW - 11 * MINUTE,
        headline=sentence,
        waiting_since=NOW - 12 * MINUTE,
        reserve_assumed=True,
        budget=195_904,
        trigger=TriggerView(value=140_000, scope="history", source=TriggerSource.DECLARED,
                            on_strip=149_500),
        headroom=Headroom(trigger=-261, budget=46_143, window=50_239),
        forecast=None,
        history=HistoryLoad(value=140_261, limit=140_000, source=Source.AGENT),
        segments=(
            Segment(kind="system", tokens=6_400),
            Segment(kind="tools", tokens=3_100),
            Segment(kind="topics", tokens=113_015),
            Segment(kind="current", tokens=27_246),
        ),
        requests=4_512,
        turns=36,
        compactions=3,
        outcomes={"summarizer_failed": 3},
        last_compaction=AttemptBrief(outcome=Outcome.SUMMARIZER_FAILED, before=140_261,
                                     after=140_261, at=NOW - 12 * MINUTE,
                                     relief=Relief.NOT_RELIEVED),
        empty_replies=0,
        unusable_replies=5,
        findings=(FindingBrief(code="stopped", severity=Severity.CRITICAL, sentence=sentence,
                               since=NOW - 11 * MINUTE),),
        trend=tuple(min(149_761, 60_000 + 3_000 * i) for i in range(60)),
        request_bytes=1_120_000,
        images=0,
    )  # fmt: skip


def maka() -> ChatSummary:
    """Incident 2: a structural outcome set the flag of a failed summarizer; the rescue is off."""
    return healthy(
        33_400,
        32_768,
        title="maka: translate the handbook",
        model="llama-3.3-70b",
        runtime="maka",
        state=State.BLOCKED,
        severity=Severity.CRITICAL,
        since=NOW - 3 * MINUTE,
        headline="Blocked: a structural latch set with 0 summarizer calls stopped the rescue after "
        "an overflow at 33,400 of 32,768. Clear the latch, then compact.",
        waiting_since=NOW - 3 * MINUTE,
        latches=(LatchBrief(latch="l1", kind="structural", justified=False),),
        forecast=None,
        compactions=1,
        last_compaction=AttemptBrief(outcome=Outcome.NOTHING_FOLDABLE, before=18_100, after=18_100,
                                     at=NOW - 5 * MINUTE, relief=Relief.NOT_RELIEVED),
    )  # fmt: skip


def qwenpaw() -> ChatSummary:
    """Incident 3: the local count saw 0.60 of what was sent; the provider answers 200, empty."""
    return healthy(
        196_602,
        196_608,
        title="qwenpaw room 7",
        model="qwen3-max",
        runtime="qwenpaw",
        state=State.SILENT,
        severity=Severity.CRITICAL,
        since=NOW - 6 * MINUTE,
        headline="Silent: 2 empty replies at 196,602 of 192,512 usable tokens; the local count saw "
        "0.60 of the prompt. Force a fallback, then continue.",
        waiting_since=NOW - 6 * MINUTE,
        calibration=0.6,
        forecast=None,
        empty_replies=2,
        compactions=0,
        last_compaction=None,
    )


def finding(code: str = "stalled", **changes: Any) -> FindingView:
    fields: dict[str, Any] = {
        "code": code,
        "severity": Severity.CRITICAL,
        "state": State.STALLED,
        "title": "Compaction frees nothing",
        "sentence": "3 compactions freed 0 of 140,261 history tokens with 27 summarizer calls.",
        "since": NOW - 14 * MINUTE,
        "since_seq": 71,
        "count": 3,
        "evidence": (71, 78, 85),
        "recommended": (Advice(action="compact_fallback",
                               text="Force a fallback: it needs no model."),),
        "discouraged": (Advice(action="clear_latch", text="Nothing is latched: clearing would only "
                               "repeat a call that came back empty 9 times."),),
    }  # fmt: skip
    return FindingView(**{**fields, **changes})


def attempt(number: int = 1, **changes: Any) -> AttemptView:
    fields: dict[str, Any] = {
        "attempt": f"a-{number}",
        "outcome": Outcome.SUMMARIZER_FAILED,
        "trigger": "proactive",
        "scope": "history",
        "started_seq": 64 + 7 * number,
        "finished_seq": 70 + 7 * number,
        "started_at": NOW - (16 - number) * MINUTE - 11_800,
        "finished_at": NOW - (16 - number) * MINUTE,
        "before": 140_261,
        "after": 140_261,
        "freed": 0,
        "relief": Relief.NOT_RELIEVED,
        "reported": "compressed",
        "reason": "no progress",
        "error_class": "empty",
        "steps": (
            StepView(step="attention", before=140_261, after=140_261, calls=9),
            StepView(step="topics_to_bulk", before=140_261, after=140_261, calls=0),
        ),
        "summarizer": SummarizerView(model="glm-5.3-air", calls=9, input=412_000, output=0,
                                     error="empty", detail="200 with empty content"),
        "ms": 11_800,
    }  # fmt: skip
    return AttemptView(**{**fields, **changes})


def latch(**changes: Any) -> LatchView:
    fields: dict[str, Any] = {
        "latch": "l1",
        "kind": "structural",
        "scope": "turn",
        "justified": False,
        "why": "Set by an attempt with 0 summarizer calls: a structural outcome lapses when the "
        "history changes, and it has changed since.",
        "set_at": NOW - 5 * MINUTE,
        "set_seq": 12,
        "reason": "no_safe_completed_span",
        "attempt": "a-1",
        "calls": 0,
        "tokens": 18_100,
        "recommended": (Advice(action="clear_latch", text="Clear the latch, then compact."),),
    }
    return LatchView(**{**fields, **changes})


def structure(topics: int = 35, bulks: int = 0) -> Structure:
    blocks = [Block(kind="system", id="system", tokens=6_400),
              Block(kind="tools", id="tools", tokens=3_100)]  # fmt: skip
    blocks += [Block(kind="bulk", id=f"b{i}", tokens=2_000, messages=9) for i in range(bulks)]
    blocks += [
        Block(kind="topic", id=f"t{i}", tokens=2_000 + 140 * (i % 17), messages=12 + i % 5,
              title=f"topic {i}: check the cluster", largest=900 + 70 * (i % 9))
        for i in range(topics)
    ]  # fmt: skip
    blocks.append(Block(kind="current", id="current", tokens=27_246, messages=31, largest=5_980))
    return Structure(source="snapshot", revision="r9", at_seq=90, blocks=tuple(blocks))


def detail(summary: ChatSummary | None = None, **changes: Any) -> ChatDetail:
    summary = summary or agent_zero()
    fields: dict[str, Any] = {
        "summary": summary,
        "chat_seq": 100,
        "headline": summary.headline,
        "headline_advice": Advice(action="compact_fallback",
                                  text="Force a fallback, then continue: it needs no model."),
        "findings": (
            finding("stopped", state=State.STOPPED, title="The agent stopped",
                    sentence="5 unusable replies in a row ended the turn.", count=1,
                    evidence=(98,)),
            finding(),
            finding("summarizer_failing", severity=Severity.WARNING, title="Summarizer fails",
                    sentence="27 calls of glm-5.3-air came back empty; 1,236,000 input tokens "
                    "burnt.", discouraged=(), recommended=(
                        Advice(action="manual", text="Look at the quota of glm-5.3-air at its "
                               "provider."),)),
        ),
        "heavy": tuple(
            HeavyItem(id=f"m{i}", kind="tool_result", role="tool", tokens=14_120 - 640 * i,
                      name="pg_dump", excerpt="CREATE TABLE invoices (id bigint primary key, …",
                      in_context=i != 3, chat_seq=30 + i)
            for i in range(8)
        ),
        "structure": structure(),
    }  # fmt: skip
    return ChatDetail(**{**fields, **changes})


def fleet(count: int = 60) -> list[FakeChat]:
    """Worst first: the incidents, some to watch, and many that are fine."""
    rows = [
        FakeChat(id=1, agent="worker-3", external_id="chat-az", summary=agent_zero()),
        FakeChat(id=2, agent="qwenpaw-1", external_id="room-7", summary=qwenpaw()),
        FakeChat(id=3, agent="maka-dev", external_id="m-1", summary=maka()),
        FakeChat(id=4, agent="worker-9", external_id="c-4", summary=healthy(
            151_000, 128_000, title="index the whole monorepo", state=State.OVER,
            severity=Severity.CRITICAL, headline="Over: the prompt is 23,000 beyond the window.",
            headroom=Headroom(trigger=-48_600, budget=-27_096, window=-23_000))),
        FakeChat(id=5, agent="worker-2", external_id="c-5", summary=healthy(
            171_000, title="quarterly report", state=State.SATURATED, severity=Severity.WARNING,
            headline="Saturated: 171,000 is past the declared trigger of 160,000; "
            "no attempt in 2 requests.", headroom=Headroom(trigger=-11_000, budget=24_904),
            forecast=None, last_compaction=None)),
        FakeChat(id=6, agent="worker-2", external_id="c-6", summary=healthy(
            title="who changed the schema?", state=State.UNRELIABLE, severity=Severity.WARNING,
            headline="Unreliable: the counter grows by equal steps; it may be a running total.",
            load=Reading(value=61_240, source=Source.PROVIDER, reliable=False))),
        FakeChat(id=7, agent="laptop", external_id="c-7", summary=healthy(
            title="a session file", connection=Connection.READ_ONLY, state=State.WATCH,
            severity=Severity.INFO, command_kinds=(), headline="Watch: near the trigger.")),
        FakeChat(id=8, agent="worker-5", external_id="c-8", summary=healthy(
            title="compacted a moment ago", state=State.RECOVERING, severity=Severity.WARNING,
            headline="Recovering: the fallback freed 78,761; waiting for the next reading.",
            load=Reading(value=61_500, source=Source.PENDING,
                         reason="a compaction ended after the last request"))),
        FakeChat(id=9, agent="bare", external_id="c-9", summary=ChatSummary(
            title=None, opened_at=NOW, since=NOW - 30_000)),
    ]  # fmt: skip
    for i in range(len(rows) + 1, count + 1):
        load = 8_000 + (i * 7_919) % 120_000
        rows.append(
            FakeChat(id=i, agent=f"worker-{i % 7}", external_id=f"c-{i}",
                     summary=healthy(load, title=f"ticket {4000 + i}: {_TOPICS[i % 6]}",
                                     since=NOW - i * MINUTE))
        )  # fmt: skip
    return rows


_TOPICS = ("flaky test in the importer", "rename the flags", "write the changelog",
           "why is the cache cold", "port the parser", "review the migration")  # fmt: skip
