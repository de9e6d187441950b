"""C: compactions that make the context larger, or whose numbers cannot be compared."""

from __future__ import annotations

from tests.incidents.telling import Telling, case


@case(
    "C18-gemini-doubled", "google-gemini/gemini-cli#4442", "a",
    "A compression doubles the context; quota errors and an overflow follow",
    note="The case names the state over the window; a compaction that grew is the earlier row, and "
    "the overflow stands beside it.",
)  # fmt: skip
def doubled(t: Telling) -> None:
    t.opened(window=1_048_576)
    turn = t.turn()
    t.compacts(905_405, 1_811_387, reported="compressed")
    t.check(
        state="stalled",
        fires={"grew": "critical"},
        outcomes=["grew"],
        action="restore_backup",
        says=["905,405", "1,811,387", "x2.0"],
    )
    t.fails("quota", status=429)
    t.check(state="stalled", fires={"grew": "critical"}, silent=["turns_failing"])
    t.fails("overflow", stated_prompt=1_624_359, stated_window=1_048_576)
    t.ends(turn, "error")
    t.check(
        state="stalled",
        fires={"grew": "critical", "over_window": "critical"},
        silent=["summarizer_failing", "looping", "turns_failing"],
        action="restore_backup",
        says=["905,405 to 1,811,387"],
        shows={"load.value": 1_624_359},
    )


@case(
    "C19-codex-clamped", "openai/codex#40619", "ac",
    "Five compactions in a row, then a manual one that ends at exactly the window",
    note="The growth and the doubt stand side by side: with a count of exactly the window neither "
    "is certain, so that the growth is a warning until a request is counted.",
)  # fmt: skip
def clamped(t: Telling) -> None:
    t.opened(window=258_400)
    t.turn()
    for _ in range(5):
        t.compacts(reported="ok")
    t.check(state="looping", fires={"looping": "critical"}, silent=["grew"])
    t.compacts(244_138, 258_400, trigger="manual", reported="ok")
    t.check(
        state="stalled",
        severity="warning",
        fires={"looping": "warning", "grew": "warning", "meter_unreliable": "warning"},
        silent=["over_window", "over_budget", "projected_over"],
        freed=[None] * 5 + [-14_262],
        says=["244,138 to 258,400", "looks clamped"],
    )


@case(
    "C20-claude-code-regrown", "anthropics/claude-code#85483", "bc",
    "A sub-agent's compaction starts at 30,029 and leaves 197,548",
    note="The file's own count before is not stated for this boundary; before is the last usage.",
)  # fmt: skip
def regrown(t: Telling) -> None:
    t.transcript()
    t.opened(parent="main")
    t.turn("task")
    t.reply(usage={"dialect": "anthropic", "input": 30_029}, content={"tool_calls": 1})
    t.compacts(30_029, reported="compact_boundary")
    t.check(silent=["grew", "stalled"], outcomes=["unknown"])
    t.reply(usage={"dialect": "anthropic", "input": 197_548}, content={"tool_calls": 1})
    t.check(
        state="stalled",
        severity="warning",
        fires={"grew": "warning"},
        silent=["looping", "over_window", "meter_unreliable"],
        outcomes=["grew"],
        freed=[-167_519],
        says=["30,029", "197,548", "167,519"],
    )


@case(
    "C21-oh-my-pi-bytes", "can1357/oh-my-pi#10023", "a",
    "The context is small in tokens and the request too large in bytes",
)  # fmt: skip
def bytes_too_many(t: Telling) -> None:
    t.opened(window=262_144, bytes_limit=600_000)
    t.turn()
    attempt = t.compacts(72_706, 79_680, trigger="manual", reported="ok")
    t.fails("too_large", sent={"bytes": 888_000}, status=413)
    t.say("latch.set", latch="maintenance", kind="no_gain", scope="chat", attempt=attempt)
    t.check(
        state="over",
        fires={"bytes_limit": "critical", "grew": "warning", "latched": "warning"},
        silent=["over_window", "over_budget", "projected_over", "latched_unjustified", "stalled"],
        latches=[["no_gain", True]],
        outcomes=["grew"],
        freed=[-6_974],
        action="manual",
        against=["compact_fallback"],
        says=["888,000", "600,000"],
    )


@case(
    "C22-kilocode-scopes", "Kilo-Org/kilocode#2037", "c",
    "404 before and 17,133 after count different things",
    note="That before counts a part of the history and after the whole prompt is the report's "
    "proof for another agent; the fixture names these scopes.",
)  # fmt: skip
def scopes(t: Telling) -> None:
    t.opened()
    t.turn()
    t.compacts(404, 17_133, scope="history", after_scope="prompt", reported="skipped")
    t.check(
        state="unreliable",
        fires={"meter_unreliable": "warning"},
        silent=["grew", "stalled", "looping", "over_window"],
        outcomes=["not_comparable"],
    )
