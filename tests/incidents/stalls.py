"""A: compaction was tried and brought no relief."""

from __future__ import annotations

from tests.incidents.telling import SECOND, Telling, case


@case(
    "C01-agent-zero-no-quota", "agent0ai/agent-zero#1881", "ae",
    "The utility model has no quota: nothing is freed, then the chat answers nothing",
    note="The state is *stopped*, the first row that holds; *stalled* and *silent* stand beside "
    "it as its cause. `stalled` is a warning here because the report states neither a trigger nor "
    "a window; with the runtime's own trigger of 140,000 it is critical.",
)  # fmt: skip
def agent_zero(t: Telling) -> None:
    t.opened()
    for number in range(2):
        turn = t.turn()
        t.compacts(
            140_261, 140_261, scope="history", reported="stalled", summarizer={"error": "quota"}
        )
        if number == 0:
            t.check(
                state="stalled",
                fires={"summarizer_failing": "warning"},
                silent=["stalled", "silent_empty", "stopped", "looping"],
                outcomes=["summarizer_failed"],
            )
        for _ in range(5):
            t.empty()
        t.say("agent.stopped", reason="unusable replies", count=5, limit=5)
        t.ends(turn, "stopped")
    t.check(
        state="stopped",
        fires={
            "stopped": "critical", "silent_empty": "critical", "stalled": "warning",
            "summarizer_failing": "warning",
        },
        silent=["over_window", "over_budget", "looping", "latched", "latched_unjustified"],
        latches=[],
        action="compact_fallback",
        against=["compact_summarize", "clear_latch"],
        says=["freed 0 of 140,261 history tokens", "no quota left", "5 unusable replies"],
        shows={"history.value": 140_261, "window.value": None, "load.value": None},
    )  # fmt: skip


@case(
    "C03-hermes-lock", "NousResearch/hermes-agent#99692", "ae",
    "A live process holds the compaction lock; every message waits",
    note="Holder and window are stated; the attempts that abort at once are the ones told here.",
)  # fmt: skip
def hermes_lock(t: Telling) -> None:
    t.opened(window=1_048_576, trigger={"tokens": 524_288})
    for number in range(3):
        turn = t.turn()
        attempt = t.compacts(556_000, reported="lock_held")
        if number == 0:
            t.say(
                "latch.set", latch="session", kind="lock_held", scope="process", attempt=attempt,
                holder={"id": "24468", "alive": True},
            )  # fmt: skip
        t.reply(sent={"local": 556_000}, content={"text_chars": 10})
        t.ends(turn, "answered")
    t.check(
        state="saturated",
        fires={"over_trigger": "warning", "latched": "warning"},
        silent=["over_window", "over_budget", "latched_unjustified", "stalled", "looping"],
        latches=[["lock_held", True]],
        outcomes=["refused", "refused", "refused"],
        action="compact_fallback",
        against=["clear_latch"],
        shows={"load.value": 556_000, "trigger.value": 524_288, "window.value": 1_048_576},
    )


@case(
    "C03-hermes-endless", "NousResearch/hermes-agent#98722", "ae",
    "508.1k of a window of 272k, and a compaction that ends at its time limit",
    note="The case says over the window and stalled: both hold, and stalled is the earlier row.",
)  # fmt: skip
def hermes_endless(t: Telling) -> None:
    t.opened()
    t.say("usage.update", used=508_100, size=272_000)
    t.check(state="over", fires={"over_window": "critical"}, shows={"load.value": 508_100})
    t.turn()
    t.compacts(508_100, reported="timeout", took=600 * SECOND)
    t.check(
        state="stalled",
        fires={"over_window": "critical", "stalled": "critical"},
        silent=["meter_unreliable", "looping"],
        outcomes=["timed_out"],
        action="compact_fallback",
        shows={"load.value": 508_100, "window.value": 272_000},
    )


@case(
    "C04-gemini-small-gain", "google-gemini/gemini-cli#15225", "a",
    "Two compressions from the very same size, each freeing 3.7%",
)  # fmt: skip
def gemini_small_gain(t: Telling) -> None:
    t.opened(model="gemini-3-flash-preview")
    turn = t.turn()
    t.compacts(734_649, 707_322, reported="compressed")
    t.reply(content={"text_chars": 10})
    t.ends(turn, "answered")
    turn = t.turn()
    t.compacts(734_649, 707_500, reported="compressed")
    t.check(
        state="stalled",
        fires={"stalled": "warning", "ineffective": "info"},
        silent=["looping", "over_window", "over_budget", "summarizer_failing"],
        outcomes=["reduced", "reduced"],
        freed=[27_327, 27_149],
        relief=["not_relieved", "not_relieved"],
        action="compact_fallback",
        says=["734,649", "not enough"],
    )
    t.ends(turn, "answered")
    t.turn()
    t.compacts(trigger="manual", reported="not smaller", removed=[])
    t.check(
        state="stalled",
        fires={"stalled": "warning"},
        outcomes=["reduced", "reduced", "no_progress"],
        action="compact_fallback",
        silent=["over_window", "over_budget", "looping"],
    )


@case(
    "C05-acp-same-range", "ranxianglei/opencode-acp#135", "a",
    "A range that was pruned before is summarised again and grows by the summary",
    note="The report shows one attempt and says that it repeats; two are told. From the third "
    "within one turn on it is a loop.",
)  # fmt: skip
def acp_same_range(t: Telling) -> None:
    t.opened()
    t.turn()
    t.say("usage.update", used=51_300)
    for before in (51_300, 51_800):
        t.compacts(
            before, 51_800, reported="compressed", removed=[], input_hash="m01309-m02150",
            added=[{"id": t.name("s"), "kind": "summary", "tokens": 482}],
        )  # fmt: skip
    t.say("usage.update", used=51_800)
    t.check(
        state="stalled",
        fires={"stalled": "warning"},
        silent=["looping", "over_window", "over_budget", "summarizer_failing"],
        latches=[],
        outcomes=["no_progress", "no_progress"],
        severity="warning",
        action="manual",
        shows={"load.value": 51_800},
    )


@case(
    "C07-openhands-forgets-nothing", "OpenHands/OpenHands#10873", "a",
    "Condensations many times a second, each forgetting 0 of 5 events",
)  # fmt: skip
def openhands(t: Telling) -> None:
    t.opened(model="qwen3-coder")
    t.turn()
    t.fails("other")
    for wait in (0, 0, 0, 0):
        t.wait(wait)
        t.compacts(trigger="reactive", reported="condensed", removed=[])
    t.check(
        state="looping",
        fires={"looping": "critical"},
        silent=["over_window", "over_budget", "summarizer_failing", "emptied"],
        latches=[],
        outcomes=["no_progress"] * 4,
        action="stop_turn",
        against=["compact_fallback"],
        says=["4 compactions"],
    )


@case(
    "C08-jcode-not-applied", "1jehuang/jcode#170", "a",
    "One real compaction, then 28 that free almost nothing of a context that grew back 40 times",
    note="Per cycle the report gives a range of 100 to 600; 500 is the one it writes out. Turns "
    "are not stated, so that each compaction stands in one of its own here.",
)  # fmt: skip
def jcode(t: Telling) -> None:
    t.opened(model="claude-opus-4-6")
    turn = t.turn()
    t.reply(187_982)
    t.compacts(187_982, 87_965, reported="compacted")
    t.reply(19_000, content={"text_chars": 10})
    t.ends(turn, "answered")
    t.check(state="healthy", outcomes=["reduced"], relief=["relieved"])
    turn = t.turn()
    t.reply(785_000)
    t.check(fires={"jump": "warning"}, silent=["over_window", "stalled", "meter_unreliable"])
    for _ in range(28):
        t.compacts(800_000, 799_500, reported="compacted")
        t.ends(turn, "answered")
        turn = t.turn()
    t.reply(799_500)
    t.check(
        state="stalled",
        fires={"stalled": "critical"},
        silent=["over_window", "over_budget"],
        counts={"reduced": 29},
        action="compact_fallback",
        shows={"load.value": 799_500, "window.value": 1_000_000},
    )
