"""D and E: latches, right and wrong; calls and results torn apart; K: what a compaction lost."""

from __future__ import annotations

from tests.incidents.telling import MINUTE, SECOND, START, Telling, case


@case(
    "C23-maka-structural", "apache/maka, report on a shared failure flag", "ae",
    "Nothing could be folded with 0 calls, and the flag it left stops the rescue",
)  # fmt: skip
def maka(t: Telling) -> None:
    t.opened()
    turn = t.turn()
    t.message()
    t.message("assistant", "tool_call", calls=["c1"])
    t.message("tool", "tool_result", answers=["c1"])
    attempt = t.compacts(
        reported="fail_open", reason="no_safe_completed_span", summarizer={"calls": 0}
    )
    t.say("latch.set", latch="flag", scope="turn", attempt=attempt, release={"turn_end": True})
    t.check(
        state="watch",
        fires={"latched_unjustified": "warning"},
        silent=["summarizer_failing", "stalled", "over_window", "latched"],
        latches=[["structural", False]],
        outcomes=["nothing_foldable"],
        action="clear_latch",
    )
    t.message("assistant", "tool_call", calls=["c2"])
    t.message("tool", "tool_result", answers=["c2"])
    t.compacts(reported="skipped", summarizer={"calls": 0})
    t.fails("overflow")
    t.compacts(trigger="reactive", reported="skipped", summarizer={"calls": 0})
    t.ends(turn, "error", "context overflow")
    t.check(
        state="blocked",
        fires={"latched_unjustified": "critical", "over_window": "critical"},
        silent=["summarizer_failing", "turns_failing", "broken_pairs", "latched"],
        latches=[["structural", False]],
        action="clear_latch",
        says=["stopped the rescue"],
    )


@case(
    "C24-maka-summarizer", "apache/maka#4634", "a",
    "15 summaries fail in 47 minutes, each fed 180k to 235k, and nothing latches",
    note="Per call the report gives a range; 200,000 is its total of about 3 million by 15.",
)  # fmt: skip
def maka_summarizer(t: Telling) -> None:
    t.opened(model="kimi-k3-256k")
    t.turn()
    for _ in range(15):
        t.compacts(
            reported="failed",
            summarizer={"calls": 1, "input": 200_000, "error": "malformed"},
            took=3 * MINUTE - SECOND,
        )
        t.reply(content={"tool_calls": 1})
    t.check(
        state="stalled",
        fires={"summarizer_failing": "critical"},
        silent=["looping", "over_window", "over_budget", "latched_unjustified"],
        latches=[],
        counts={"summarizer_failed": 15},
        action="compact_fallback",
        against=["compact_summarize"],
        says=["15 calls", "3,000,000 input tokens"],
    )


@case(
    "C24-maka-latched", "apache/maka#4634", "a",
    "The same failure where it latches, as it should from the first failed call on",
)  # fmt: skip
def maka_latched(t: Telling) -> None:
    t.opened(model="kimi-k3-256k")
    t.turn()
    attempt = t.compacts(
        reported="failed", summarizer={"calls": 1, "input": 200_000, "error": "malformed"}
    )
    t.say("latch.set", latch="circuit", scope="turn", attempt=attempt)
    t.check(
        state="stalled",
        fires={"summarizer_failing": "warning", "latched": "warning"},
        silent=["latched_unjustified"],
        latches=[["summarizer", True]],
        action="compact_fallback",
        against=["clear_latch", "compact_summarize"],
    )


_COOLDOWN_NOTE = (
    "The report gives no sizes, only just above the threshold and near the hard limit; a window of "
    "100,000 and a threshold of 80,000 serve as the scale."
)


def _cooldown(t: Telling, load: int) -> None:
    t.opened(window=100_000, trigger={"tokens": 80_000})
    t.turn()
    t.reply(load)
    attempt = t.compacts(reported="failed", summarizer={"calls": 1, "error": "timeout"})
    t.say(
        "latch.set", latch="pause", kind="cooldown", scope="chat", attempt=attempt,
        release={"until": START + 30 * MINUTE},
    )  # fmt: skip


@case(
    "C25-hermes-cooldown-room", "NousResearch/hermes-agent#100661", "e",
    "A cooldown while the load is just above the threshold: wait", note=_COOLDOWN_NOTE,
)  # fmt: skip
def cooldown_room(t: Telling) -> None:
    _cooldown(t, 81_000)
    t.check(
        fires={"latched": "warning"},
        silent=["over_budget", "latched_unjustified", "stalled"],
        latches=[["cooldown", True]],
        advice={"latched": "manual"},
        against=["clear_latch"],
    )
    t.looked_at(30 * MINUTE)
    t.check(latches=[], silent=["latched"])


@case(
    "C25-hermes-cooldown-full", "NousResearch/hermes-agent#15935", "e",
    "The same cooldown near the hard limit: the fallback now", note=_COOLDOWN_NOTE,
)  # fmt: skip
def cooldown_full(t: Telling) -> None:
    _cooldown(t, 93_000)
    t.check(
        fires={"latched": "warning"},
        latches=[["cooldown", True]],
        advice={"latched": "compact_fallback"},
        action="compact_fallback",
        against=["clear_latch"],
    )


@case(
    "C26-claude-code-breaker", "anthropics/claude-code#34278", "a",
    "Three failures, then nothing is tried any more while the load climbs",
    note="The class of the failures is not stated. Above 90% is stated, of what model is not: the "
    "other report's 200k model is the scale.",
)  # fmt: skip
def breaker(t: Telling) -> None:
    t.opened(model="claude-haiku-4-5")
    t.turn()
    for _ in range(3):
        t.compacts(reported="failed", summarizer={"error": "other"})
    for load in (180_000, 184_000, 188_000):
        t.reply(load, content={"tool_calls": 1})
    t.check(
        state="stalled",
        fires={"summarizer_failing": "critical", "latched": "warning"},
        silent=["latched_unjustified", "over_window", "over_budget", "looping"],
        latches=[["inferred", True]],
        action="compact_fallback",
        headline=["failed in 3 compactions in a row"],
        unsaid=["it fails"],
    )


@case(
    "C26-claude-code-no-attempt", "anthropics/claude-code#65746", "a",
    "Above 90% and no attempt, with no failure on record: the reason is not known",
)  # fmt: skip
def no_attempt(t: Telling) -> None:
    t.opened(model="claude-haiku-4-5")
    for load in (180_000, 184_000, 188_000):
        turn = t.turn()
        t.reply(load, content={"text_chars": 10})
        t.ends(turn, "answered")
    t.check(
        state="saturated",
        fires={"overdue": "warning"},
        silent=["latched", "latched_unjustified", "stalled", "summarizer_failing", "over_budget"],
        latches=[],
        action="compact_summarize",
        says=["not known"],
    )


@case(
    "C28-ml-intern-one-message", "huggingface/ml-intern#336", "a",
    "Nothing to summarise at 189,073 above 180,000, because there is one user message only",
)  # fmt: skip
def one_message(t: Telling) -> None:
    t.opened(trigger={"tokens": 180_000})
    turn = t.turn("task")
    t.compacts(
        189_073, reported="nothing_to_compact", reason="nothing to summarize",
        summarizer={"calls": 0},
    )  # fmt: skip
    t.say("agent.stopped", reason="nothing to summarise above the threshold")
    t.ends(turn, "stopped")
    t.check(
        state="stopped",
        fires={"stopped": "critical"},
        silent=["summarizer_failing", "looping", "over_window"],
        outcomes=["nothing_foldable"],
        action="compact_fallback",
        shows={"load.value": 189_073, "trigger.value": 180_000},
    )


@case(
    "C28-openclaw-refills", "openclaw/openclaw#78562", "a",
    "Seven compactions that each succeed, and tool output that refills the context",
    note="What each compaction left is not stated, only that each succeeded; half is the scale.",
)  # fmt: skip
def refills(t: Telling) -> None:
    t.opened(window=272_000)
    t.turn()
    t.reply(145_000, content={"tool_calls": 1})
    for number in range(7):
        t.compacts(145_000, reported="ok", took=30_000)
        t.reply(72_500, content={"tool_calls": 1})
        t.message("assistant", "tool_call", calls=[f"c{number}"])
        t.message("tool", "tool_result", answers=[f"c{number}"], tokens=72_500, name="tool")
        t.reply(145_000, content={"tool_calls": 1})
    t.check(
        state="looping",
        severity="warning",
        fires={"looping": "warning"},
        silent=["stalled", "summarizer_failing", "over_window", "over_budget", "latched"],
        counts={"reduced": 7},
        says=["7 compactions", "real relief"],
    )


@case(
    "C29-opencode-torn-pair", "anomalyco/opencode#27594", "be",
    "A compaction succeeds, and the next request is refused for a call without its result",
)  # fmt: skip
def torn_pair(t: Telling) -> None:
    t.opened()
    turn = t.turn()
    t.compacts(reported="ok", took=126_000)
    t.message("user", "text")
    t.ends(turn, "cancelled")
    turn = t.turn("continuation")
    t.say("compaction.started", attempt="second", trigger="proactive")
    refused = "tool_use toolu_01KP2w stands without its tool_result (messages.2)"
    t.fails("invalid", status=400, detail=refused)
    t.check(
        state="broken",
        fires={"broken_pairs": "critical"},
        silent=["over_window", "over_budget", "stalled", "looping"],
        action="repair_pairs",
        against=["compact_summarize", "continue"],
        says=["toolu_01KP2w"],
    )
    t.ends(turn, "error", "400")
    t.turn()
    t.fails("invalid", status=400, detail=refused)
    t.check(state="broken", opened_once=["broken_pairs"])
    other = "tool_use toolu_01MJXp stands without its tool_result"
    t.fails("invalid", status=400, detail=other)
    t.check(state="broken", opened_once=["broken_pairs"], says=["toolu_01MJXp"])


@case(
    "C32-openclaw-orphans-doubled", "openclaw/openclaw#93320", "ba",
    "A provider's timeout in a compaction; each further pass doubles the open call",
)  # fmt: skip
def orphans_doubled(t: Telling) -> None:
    t.opened()
    t.turn()
    t.message("assistant", "tool_call", calls=["call_7f3a91"])
    t.check(state="healthy", silent=["broken_pairs"])
    for number in range(3):
        t.compacts(118_000, reported="failed", summarizer={"calls": 1, "error": "timeout"})
        t.message("assistant", "tool_call", id=f"copy{number}", calls=["call_7f3a91"])
    t.wait(11 * MINUTE)
    t.turn()
    t.fails("invalid", status=400, detail="tool_call call_7f3a91 has no answer")
    t.check(
        state="broken",
        fires={"broken_pairs": "critical", "summarizer_failing": "critical"},
        silent=["over_window", "over_budget"],
        action="repair_pairs",
        says=["1 call without a result", "call_7f3a91"],
        counts={"summarizer_failed": 3},
    )


@case(
    "C33-deepagents-cut-call", "langchain-ai/deepagents#270", "b",
    "The summary takes the call and the last six messages keep its result",
)  # fmt: skip
def cut_call(t: Telling) -> None:
    t.opened()
    t.turn()
    call = t.message("assistant", "tool_call", calls=["c1"])
    t.message("tool", "tool_result", answers=["c1"])
    t.compacts(reported="ok", removed=[call], added=[{"id": "s1", "kind": "summary"}])
    t.check(
        state="broken",
        fires={"broken_pairs": "critical"},
        silent=["over_window", "stalled"],
        action="repair_pairs",
        says=["1 result without a call", "a compaction cut them"],
    )


@case(
    "C33-openharness-orphan-call", "HKUDS/OpenHarness#191", "b",
    "The overflow comes first, the orphan call second: compaction did not cut it",
)  # fmt: skip
def orphan_call(t: Telling) -> None:
    t.opened()
    t.turn()
    t.message("assistant", "tool_call", calls=["c1"])
    t.fails("overflow")
    t.check(state="over", fires={"over_window": "critical"}, silent=["broken_pairs"])
    t.fails("invalid", detail="no tool output for function call c1")
    t.check(
        state="broken",
        fires={"broken_pairs": "critical", "over_window": "critical"},
        unsaid=["a compaction cut them"],
        order=["over_window", "broken_pairs"],
    )


@case(
    "C64-letta-lost-tail", "letta-ai/letta#2601", "b",
    "Of four messages the first two are summarised and all four are gone",
)  # fmt: skip
def lost_tail(t: Telling) -> None:
    t.opened()
    t.turn()
    kept = [t.message() for _ in range(4)]
    t.compacts(reported="ok", removed=kept, added=[{"id": "s1", "kind": "summary"}])
    t.check(
        state="broken",
        fires={"lost_tail": "critical"},
        silent=["over_window", "looping"],
        action="restore_backup",
        says=[kept[-1]],
    )


@case(
    "C65-opencode-prompt-lost", "anomalyco/opencode#23998", "ba",
    "A prompt sent just before a compaction is not in what the compaction left",
)  # fmt: skip
def prompt_lost(t: Telling) -> None:
    t.opened()
    old = t.message(id="old task")
    t.turn()
    t.message(id="the prompt")
    t.compacts(reported="ok")
    t.say(
        "history.snapshot", revision="after",
        order=[{"id": "s1", "role": "user", "kind": "summary"}],
    )  # fmt: skip
    t.check(
        state="broken",
        fires={"lost_tail": "critical"},
        silent=["stale_tail", "over_window"],
        action="restore_backup",
        says=["the prompt"],
    )
    assert old


@case(
    "C65-codex-stale-last", "openai/codex#27731", "ba",
    "An older request stands last in the compacted history and is acted on",
)  # fmt: skip
def stale_last(t: Telling) -> None:
    t.opened()
    t.turn()
    t.message(id="the older request")
    t.turn()
    t.message(id="the newest request")
    t.compacts(reported="ok")
    order = [
        {"id": name, "role": "user", "kind": "text"}
        for name in ("the newest request", "the older request")
    ]
    t.say("history.snapshot", revision="replacement", order=order)
    t.check(
        state="broken",
        fires={"stale_tail": "critical"},
        silent=["lost_tail", "over_window"],
        action="restore_backup",
        says=["the older request"],
    )


@case(
    "C66-browser-use-no-system", "browser-use/agent-sdk#3", "b",
    "One summary as a user message replaces everything, the system prompt too",
)  # fmt: skip
def no_system(t: Telling) -> None:
    t.opened()
    t.turn()
    first = {"id": "sys", "role": "system", "kind": "text"}
    user = {"id": t.message(), "role": "user", "kind": "text"}
    t.say("history.snapshot", revision="before", order=[first, user])
    t.compacts(reported="ok")
    summary = {"id": "s1", "role": "user", "kind": "summary"}
    t.say("history.snapshot", revision="after", order=[summary])
    t.check(
        state="broken",
        fires={"lost_system": "critical"},
        silent=["over_window"],
        action="restore_backup",
    )
