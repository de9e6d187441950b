"""B: compactions that fire again and again."""

from __future__ import annotations

from tests.incidents.telling import MINUTE, Telling, case


@case(
    "C09-claude-code-211", "anthropics/claude-code#24179", "ab",
    "211 compactions in one session, 95% of them within ten lines of the one before",
)  # fmt: skip
def claude_code_211(t: Telling) -> None:
    t.transcript()
    t.opened()
    for _ in range(11):
        turn = t.turn()
        t.message()
        t.reply(content={"text_chars": 10})
        t.compacts(reported="compact_boundary")
        for _ in range(10):
            t.reply(content={"tool_calls": 1})
        t.ends(turn, "answered")
        for _ in range(3):
            turn = t.turn()
            t.message()
            t.reply(content={"text_chars": 10})
            t.ends(turn, "cancelled")
    t.check(silent=["looping", "stalled"], counts={"unknown": 11})
    t.turn()
    for _ in range(200):
        t.compacts(reported="compact_boundary")
        t.message("user", "summary")
        t.reply(content={"tool_calls": 1})
    t.check(
        state="looping",
        fires={"looping": "critical"},
        silent=["summarizer_failing", "over_window", "over_budget", "emptied"],
        latches=[],
        counts={"unknown": 211},
        headline=["200 compactions", "start a new chat from a good summary"],
        action="manual",
        opened_once=["looping"],
    )


@case(
    "C10-opencode-floor", "anomalyco/opencode PR#48828", "ace",
    "The part that compaction cannot touch is larger than what the reserve leaves",
    note="How the floor of 43k divides into system text and tools is not stated; it stands under "
    "system as one number.",
)  # fmt: skip
def opencode_floor(t: Telling) -> None:
    t.opened(
        model="qwen-3.8-27b", provider="cerebras", window=65_536, reserve=32_000, system=43_000,
        trigger={"tokens": 33_536},
    )  # fmt: skip
    t.turn()
    t.reply(44_000, content={"tool_calls": 1})
    for _ in range(20):
        t.compacts(reported="ok")
        t.turn("continuation")
        t.reply(43_000, content={"tool_calls": 1})
    t.check(
        state="looping",
        fires={"looping": "critical", "floor_exceeds_budget": "critical"},
        muted={"over_budget": "floor_exceeds_budget", "stalled": "looping"},
        silent=["summarizer_failing", "over_window", "latched"],
        action="stop_turn",
        against=["compact_fallback"],
        says=["43,000", "33,536"],
        shows={"budget": 33_536, "load.value": 43_000, "window.value": 65_536},
    )


@case(
    "C11-opencode-reserve", "anomalyco/opencode#49965", "ca",
    "The output reserve takes the whole window: 6,478 tokens are called an overflow",
)  # fmt: skip
def opencode_reserve(t: Telling) -> None:
    t.opened(window=32_768, reserve=32_000, trigger={"tokens": 768})
    t.turn()
    t.reply(6_478, content={"tool_calls": 1})
    for _ in range(3):
        t.compacts(reported="ok")
        t.reply(6_478, content={"tool_calls": 1})
    t.check(
        state="looping",
        fires={"looping": "critical", "reserve_exceeds_window": "critical"},
        muted={"over_budget": "reserve_exceeds_window"},
        silent=["over_window", "overdue", "over_trigger"],
        action="stop_turn",
        against=["compact_fallback"],
        shows={"budget": 768, "load.value": 6_478},
        says=["32,000", "768"],
    )


@case(
    "C11-opencode-no-output", "anomalyco/opencode#45368", "ca",
    "A window of 16,384 less an output of 32,000 leaves nothing: 30 compactions in 15 minutes",
)  # fmt: skip
def opencode_no_output(t: Telling) -> None:
    t.opened(model="qwen3:4b", window=16_384, reserve=32_000)
    t.turn()
    for _ in range(30):
        t.compacts(reported="ok")
        t.reply(content={"tool_calls": 1})
        t.wait(30_000)
    t.check(
        state="looping",
        fires={"looping": "critical", "reserve_exceeds_window": "critical"},
        silent=["over_window", "over_budget", "summarizer_failing"],
        action="stop_turn",
        says=["30 compactions"],
        shows={"budget": 0, "load.value": None},
    )


@case(
    "C12-openclaw-counter", "openclaw/openclaw#119824", "ca",
    "Compaction on every message, because the counter that decides never falls",
    note="The report gives no value of the counter, so that the fixture cannot show that it never "
    "falls and the unreliable meter is not named; C62 shows a counter with its numbers. Nobody "
    "counts what a compaction leaves, so that the loop is a warning.",
)  # fmt: skip
def openclaw_counter(t: Telling) -> None:
    t.opened()
    for _ in range(4):
        turn = t.turn()
        t.compacts(reported="ok", took=3_000, summarizer={"calls": 1})
        t.reply(content={"text_chars": 10})
        t.ends(turn, "answered")
    t.check(
        state="looping",
        severity="warning",
        fires={"looping": "warning"},
        silent=["stalled", "summarizer_failing", "over_window", "over_budget"],
        counts={"unknown": 4},
        says=["4 compactions", "whether they help is not known"],
    )


@case(
    "C13-openclaw-already", "openclaw/openclaw#89358", "ae",
    "Every message fails because the last entry is a compaction already",
)  # fmt: skip
def openclaw_already(t: Telling) -> None:
    t.opened(model="deepseek-chat", window=1_000_000, trigger={"tokens": 45_000})
    for number in range(3):
        turn = t.turn()
        attempt = t.compacts(
            45_061, reported="failed", reason="already compacted", took=40_000,
            summarizer={"calls": 0},
        )  # fmt: skip
        if number == 0:
            t.say("latch.set", latch="guard", kind="already_compacted", scope="chat",
                  attempt=attempt)  # fmt: skip
        t.ends(turn, "error", "preflight compaction failed: already compacted")
    t.check(
        state="blocked",
        fires={"latched_unjustified": "critical"},
        muted={"turns_failing": "latched_unjustified"},
        silent=["over_window", "over_budget", "summarizer_failing", "stopped"],
        latches=[["already_compacted", False]],
        action="clear_latch",
        shows={"window.value": 1_000_000, "trigger.value": 45_000, "load.value": 45_061},
    )


@case(
    "C14-codex-window", "openai/codex#26783", "cb",
    "A window of 2,432 for a model whose first request of 25k was answered",
)  # fmt: skip
def codex_window(t: Telling) -> None:
    t.transcript()
    t.opened(model="gpt-5.5", window=2_432)
    turn = t.turn()
    t.reply(usage={"dialect": "codex", "input": 25_000}, content={"text_chars": 2})
    t.ends(turn, "answered")
    t.check(
        state="unreliable",
        fires={"window_conflict": "warning"},
        silent=["over_window", "over_budget", "projected_over", "looping", "overdue"],
        shows={"window.value": 1_050_000, "window.source": "evidence", "load.value": 25_000},
    )
    for _ in range(3):
        turn = t.turn()
        t.compacts(reported="ok")
        t.reply(usage={"dialect": "codex", "input": 26_000}, content={"text_chars": 2})
        t.ends(turn, "answered")
    t.check(
        state="looping",
        fires={"looping": "critical", "window_conflict": "warning"},
        silent=["over_window", "over_budget"],
        headline=["2,432", "correct the limits"],
        action="manual",
    )


@case(
    "C15-strands-400-overflows", "strands-agents/harness-sdk#3338", "ae",
    "More than 400 overflows in a row while the oldest result is cut each time",
)  # fmt: skip
def strands(t: Telling) -> None:
    t.opened(model="claude-sonnet-4-5", window=200_000)
    turn = t.turn()
    for _ in range(400):
        t.fails("overflow")
        t.compacts(trigger="reactive", reported="reduced", steps=[{"step": "large_message"}])
        t.wait(8_000)
    t.ends(turn, "error", "RecursionError")
    t.check(
        state="looping",
        fires={"looping": "critical", "over_window": "critical"},
        silent=["turns_failing", "hung"],
        action="compact_fallback",
        says=["400 compactions", "too large"],
        opened_once=["looping", "over_window"],
    )


@case(
    "C15-strands-output", "strands-agents/harness-sdk#152", "ae",
    "The prompt fits, the prompt and the asked-for output do not",
)  # fmt: skip
def strands_output(t: Telling) -> None:
    t.opened()
    t.turn()
    t.fails(
        "overflow", sent={"max_output": 64_000}, stated_prompt=142_422, stated_window=204_658
    )  # fmt: skip
    t.check(
        state="over",
        fires={"over_window": "critical"},
        muted={"over_budget": "over_window"},
        silent=["stalled", "reserve_exceeds_window"],
        says=["1,764 above the window of 204,658"],
        shows={"window.value": 204_658, "budget": 140_658, "load.source": "error"},
    )


@case(
    "C16-gemini-twice", "google-gemini/gemini-cli#8586", "a",
    "One real relief, and at once a second notice whose numbers are not known",
)  # fmt: skip
def gemini_twice(t: Telling) -> None:
    t.opened()
    t.turn()
    t.compacts(809_158, 2_758, reported="compressed")
    t.compacts(reported="compressed")
    t.check(
        state="watch",
        fires={"load_pending": "info"},
        silent=["looping", "stalled", "grew", "emptied", "summarizer_failing"],
        outcomes=["reduced", "unknown"],
        freed=[806_400, None],
    )


@case(
    "C17-nanobot-wrong-form", "HKUDS/nanobot#1931", "a",
    "137% of the window, and a summarizer that answers without the call it was asked for",
)  # fmt: skip
def nanobot_form(t: Telling) -> None:
    t.opened(window=65_536)
    t.turn()
    t.say("usage.update", used=89_631)
    t.compacts(
        reported="skipped", reason="no save_memory call", summarizer={"calls": 1,
        "error": "malformed"},
    )  # fmt: skip
    t.check(
        state="stalled",
        fires={"over_window": "critical", "stalled": "critical", "summarizer_failing": "warning"},
        silent=["looping", "latched"],
        outcomes=["summarizer_failed"],
        action="compact_fallback",
        says=["wrong form"],
        shows={"load.value": 89_631, "window.value": 65_536},
    )


@case(
    "C17-nanobot-not-saved", "HKUDS/nanobot#1698", "a",
    "The consolidation succeeds and is never saved: each begins at message 0 again",
    note="The report states two such consolidations and no size; a loop over turns is one in each "
    "of three, which is what is told. Nobody counts what they leave, so that it is a warning.",
)  # fmt: skip
def nanobot_saved(t: Telling) -> None:
    t.opened()
    for _ in range(3):
        turn = t.turn()
        t.compacts(trigger="idle", reported="ok", input_hash="from message 0")
        t.reply(content={"text_chars": 10})
        t.ends(turn, "answered")
        t.wait(MINUTE)
    t.check(
        state="looping",
        severity="warning",
        fires={"looping": "warning"},
        silent=["stalled", "summarizer_failing", "over_window"],
        counts={"unknown": 3},
    )
