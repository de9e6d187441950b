"""I: overflow without recovery, reserves ignored, one result too large."""

from __future__ import annotations

from tests.incidents.telling import Telling, case


@case(
    "C47-mimo-reserve", "XiaomiMiMo/MiMo-Code#2356", "ce",
    "The compaction aims at the raw window and lands 437 above what the output leaves",
)  # fmt: skip
def mimo(t: Telling) -> None:
    t.opened()
    t.turn()
    t.compacts(reported="ok")
    t.fails(
        "overflow", sent={"max_output": 32_000}, stated_prompt=99_509, stated_window=131_072
    )  # fmt: skip
    t.check(
        state="stalled",
        fires={"over_window": "critical", "stalled": "critical"},
        silent=["summarizer_failing", "reserve_exceeds_window"],
        action="compact_fallback",
        relief=["not_relieved"],
        headline=["1 compaction gave no relief"],
        says=["99,509 tokens and 32,000", "437 above"],
        shows={"budget": 99_072, "load.value": 99_509, "window.value": 131_072},
    )


@case(
    "C48-roo-output", "RooCodeInc/Roo-Code#11998", "c",
    "194,895 text, 10,398 tools and 51,200 output: 493 above 256,000",
)  # fmt: skip
def roo(t: Telling) -> None:
    t.opened(tools=10_398)
    t.turn()
    t.fails(
        "overflow", sent={"max_output": 51_200}, stated_prompt=205_293, stated_window=256_000
    )  # fmt: skip
    t.check(
        state="over",
        fires={"over_window": "critical"},
        says=["205,293 tokens and 51,200", "493 above"],
        shows={"budget": 204_800},
    )
    t.compacts(reported="failed", summarizer={"error": "overflow"})
    t.check(
        state="stalled",
        fires={"over_window": "critical", "stalled": "critical"},
        action="compact_fallback",
        against=["compact_summarize"],
    )


@case(
    "C49-codex-before-next", "openai/codex#13271", "ab",
    "117,322 and 10,162 new: the next prompt cannot fit, and the compaction's request neither",
)  # fmt: skip
def before_next(t: Telling) -> None:
    t.opened(window=121_600)
    t.turn()
    t.reply(usage={"dialect": "codex", "input": 117_322}, content={"tool_calls": 1})
    t.message("tool", "tool_result", tokens=10_162)
    t.check(
        state="over",
        severity="warning",
        fires={"projected_over": "warning"},
        silent=["over_window", "over_budget"],
        says=["127,484", "117,322 + 10,162"],
        action="compact_fallback",
        shows={"projection": 127_484},
    )
    t.compacts(reported="failed", summarizer={"calls": 1, "error": "overflow"})
    t.say("usage.update", used=0)
    t.check(
        state="stalled",
        fires={"stalled": "critical", "summarizer_failing": "warning"},
        silent=["looping"],
        outcomes=["summarizer_failed"],
        action="compact_fallback",
        shows={"load.value": 117_322},
    )


@case(
    "C50-opencode-plateau", "anomalyco/opencode#45168", "ca",
    "Every message counts exactly 196,608, and the cache is lost",
    note="Of the climb to 188k only the cache is stated, not the whole input.",
)  # fmt: skip
def plateau(t: Telling) -> None:
    t.opened(model="hy3")
    for _ in range(126):
        turn = t.turn()
        t.message()
        t.reply(
            usage={"dialect": "anthropic", "input": 196_608, "cache_read": 0},
            content={"text_chars": 4},
        )
        t.message("assistant")
        t.ends(turn, "answered")
    t.check(
        state="over",
        fires={"provider_truncates": "critical"},
        silent=["cumulative_usage", "stalled", "looping"],
        action="compact_fallback",
        says=["196,608"],
        opened_once=["provider_truncates"],
    )


@case(
    "C51-opencode-unreachable", "anomalyco/opencode#50574", "c",
    "The trigger stands at 968,000, the provider refuses at about 940,000",
    note="The refusal is told as an overflow with its prompt; as a generic 400 nothing in it "
    "speaks of size.",
)  # fmt: skip
def unreachable(t: Telling) -> None:
    t.opened(window=1_000_000, trigger={"tokens": 968_000})
    t.turn()
    t.reply(900_000, content={"tool_calls": 1})
    t.fails("overflow", status=400, stated_prompt=940_000)
    t.check(
        state="over",
        fires={"over_window": "critical", "trigger_unreachable": "warning"},
        silent=["stalled", "overdue"],
        action="compact_fallback",
        says=["940,000"],
    )


@case(
    "C52-kimi-compact-request", "MoonshotAI/kimi-code#476", "e",
    "The compaction's own request asks for 200,000 output and is refused; the chat is small",
    note="The summarizer is the chat's own model, with its window.",
)  # fmt: skip
def compact_request(t: Telling) -> None:
    t.opened(window=262_144, utility={"window": 262_144})
    t.turn()
    t.say("compaction.started", attempt="a1", trigger="manual")
    t.fails(
        "overflow",
        sent={"purpose": "utility", "local": 64_896, "max_output": 200_000, "attempt": "a1"},
        stated_prompt=64_896,
        stated_window=262_144,
    )
    t.say(
        "compaction.finished", attempt="a1", reported="failed",
        summarizer={"calls": 1, "error": "overflow"},
    )  # fmt: skip
    t.check(
        state="cannot_fit",
        severity="warning",
        fires={"summary_reserve": "warning", "summarizer_failing": "warning"},
        muted={"summarizer_failing": "summary_reserve"},
        silent=["over_window", "over_budget", "stalled", "latched"],
        says=["64,896 + 200,000", "264,896", "262,144"],
        action="compact_fallback",
    )


def _refused(t: Telling, count: int, folds: int, took: int) -> None:
    t.opened()
    turn = t.turn()
    t.compacts(
        reported="ok", took=took, removed=[f"m{number}" for number in range(folds)] or None,
        summarizer={"calls": 1},
    )  # fmt: skip
    t.say("guard.refused", count=count, limit=267_904, code="CONTEXT_UNFIT")
    t.ends(turn, "error", "CONTEXT_UNFIT")


@case(
    "C53-qwenpaw-refusal", "agentscope-ai/QwenPaw#7628", "ae",
    "289,259 above 267,904 after 85 and 9 folds: the agent refuses visibly",
    note="The case names the state over the window. A visible refusal is correct behaviour and a "
    "remark here, with both numbers in its sentence.",
)  # fmt: skip
def refusal(t: Telling) -> None:
    _refused(t, 289_259, 94, 26_500)
    t.check(
        state="watch",
        fires={"refused": "info"},
        silent=["silent_empty", "over_window", "summarizer_failing", "turns_failing"],
        advice={"refused": "compact_fallback"},
        headline=["289,259", "21,355", "267,904"],
    )


@case(
    "C53-qwenpaw-unfolded", "agentscope-ai/QwenPaw#7628", "ae",
    "313,235 above 267,904 and the active turn was never folded",
)  # fmt: skip
def unfolded(t: Telling) -> None:
    _refused(t, 313_235, 0, 28_800)
    t.check(
        state="watch",
        fires={"refused": "info"},
        silent=["silent_empty", "over_window", "turns_failing"],
        advice={"refused": "compact_fallback"},
        headline=["313,235", "45,331"],
    )


@case(
    "C54-open-webui-three-results", "open-webui/open-webui#27599", "ae",
    "Three results of 669,426 characters take one turn from 16,426 to 152,533",
)  # fmt: skip
def three_results(t: Telling) -> None:
    t.opened(window=131_072, trigger={"tokens": 80_000})
    turn = t.turn()
    t.reply(16_426, content={"tool_calls": 7})
    for tokens in (190, 6_878, 8_848, 5_967):
        t.message("tool", "tool_result", tokens=tokens)
    for number, chars in enumerate((270_503, 210_173, 188_750), start=1):
        t.message("tool", "tool_result", chars=chars, name=f"large result {number}")
    stated = {"stated_prompt": 152_533, "stated_window": 131_072}
    t.fails("overflow", status=400, **stated)
    t.check(
        state="over",
        fires={"over_window": "critical", "jump": "warning", "huge_item": "info"},
        silent=["stalled", "summarizer_failing", "broken_pairs"],
        action="compact_fallback",
        against=["continue"],
        says=["152,533", "large result 1"],
    )
    t.ends(turn, "error")
    for _ in range(2):
        turn = t.turn()
        t.fails("overflow", status=400, **stated)
        t.ends(turn, "error")
    t.check(
        state="stopped",
        fires={"over_window": "critical", "turns_failing": "critical"},
        action="compact_fallback",
    )


@case(
    "C55-letta-summarizer", "letta-ai/letta#3279", "e",
    "A summarizer of 58,550 is to read about 78,000",
)  # fmt: skip
def letta(t: Telling) -> None:
    t.opened(utility={"window": 58_550})
    t.turn()
    t.say("compaction.started", attempt="a1", trigger="manual")
    t.ask(purpose="utility", local=78_000, attempt="a1")
    t.check(
        state="cannot_fit",
        fires={"summarizer_too_small": "warning"},
        silent=["over_window", "stalled"],
        says=["58,550", "78,000"],
        action="compact_fallback",
    )
    t.say(
        "compaction.finished", attempt="a1", reported="failed", summarizer={"error": "overflow"}
    )  # fmt: skip
    t.check(
        state="cannot_fit",
        muted={"summarizer_failing": "summarizer_too_small"},
        outcomes=["summarizer_failed"],
        action="compact_fallback",
        against=["compact_summarize"],
    )


@case(
    "C55-hermes-threshold", "NousResearch/hermes-agent#114707", "e",
    "A threshold of 450,000 and a summarizer of 272,000",
)  # fmt: skip
def hermes(t: Telling) -> None:
    t.opened(utility={"window": 272_000}, trigger={"tokens": 450_000})
    t.turn()
    t.ask(purpose="utility", local=450_000)
    t.check(
        state="cannot_fit",
        fires={"summarizer_too_small": "warning"},
        says=["272,000", "450,000"],
        action="compact_fallback",
    )


@case(
    "C55-deepagents-summarizer", "langchain-ai/deepagents#5913", "e",
    "1,751,400 into a summarizer of 922,000",
)  # fmt: skip
def deepagents(t: Telling) -> None:
    t.opened(utility={"window": 922_000})
    t.turn()
    sent = {"purpose": "utility", "local": 1_751_400}
    t.fails("overflow", sent=sent, stated_prompt=1_751_400, stated_window=922_000)
    t.check(
        state="cannot_fit",
        fires={"summarizer_too_small": "warning"},
        silent=["over_window"],
        says=["922,000", "1,751,400"],
    )


@case(
    "C56-continue-8k", "continuedev/continue#6099", "a",
    "Tools 806, system 285, a last turn of 10,678 and 4,096 output into 8,192",
)  # fmt: skip
def eight_thousand(t: Telling) -> None:
    t.opened(window=8_192, tools=806, system=285)
    t.turn()
    t.message(tokens=10_678)
    t.fails("overflow", sent={"max_output": 4_096})
    t.check(
        state="over",
        fires={"over_window": "critical", "huge_item": "info"},
        silent=["stalled", "summarizer_failing", "floor_exceeds_budget", "reserve_exceeds_window"],
        latches=[],
        counts={},
        headline=["the context is too large"],
        unsaid=["-"],
        action="compact_fallback",
    )


@case(
    "C56-smolagents-16k", "huggingface/smolagents#1719", "a",
    "22,394 and 879 output into 16,385",
)  # fmt: skip
def sixteen_thousand(t: Telling) -> None:
    t.opened()
    t.turn()
    t.fails("overflow", sent={"max_output": 879}, stated_prompt=22_394, stated_window=16_385)
    t.check(
        state="over",
        fires={"over_window": "critical"},
        silent=["stalled", "summarizer_failing"],
        counts={},
        says=["22,394", "16,385"],
    )


@case(
    "C56-one-web-page", "openai/openai-agents-python#1093", "a",
    "One web page: 393,828 into 128,000",
)  # fmt: skip
def web_page(t: Telling) -> None:
    t.opened()
    t.turn()
    t.message("tool", "tool_result", name="web page")
    t.fails("overflow", stated_prompt=393_828, stated_window=128_000)
    t.check(
        state="over",
        fires={"over_window": "critical"},
        silent=["stalled", "summarizer_failing"],
        counts={},
        says=["393,828", "128,000"],
        action="compact_fallback",
        shows={"load.value": 393_828},
    )


@case(
    "C48-roo-one-file", "RooCodeInc/Roo-Code#4186", "c",
    "One log file larger than the window: every condensation fails, every request is refused",
)  # fmt: skip
def one_file(t: Telling) -> None:
    t.opened()
    t.turn()
    t.message("tool", "tool_result", name="log file")
    for _ in range(3):
        t.fails("overflow")
        t.compacts(trigger="reactive", reported="failed", summarizer={"error": "overflow"})
    t.check(
        state="stalled",
        fires={"over_window": "critical", "summarizer_failing": "critical", "stalled": "warning"},
        silent=["looping", "broken_pairs"],
        outcomes=["summarizer_failed"] * 3,
        relief=["not_relieved"] * 3,
        action="compact_fallback",
        against=["compact_summarize"],
    )
