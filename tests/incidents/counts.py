"""F, G and J: tokens counted wrong, windows stated wrong, meters that cannot be right."""

from __future__ import annotations

from tests.incidents.telling import Telling, case


def _full_window(t: Telling, reserve: int | None) -> None:
    t.opened(window=196_608, reserve=reserve, trigger={"ratio": 0.8})
    turn = t.turn()
    t.empty(
        sent={"local": 117_961}, finish="stop",
        usage={"dialect": "openai", "input": 196_602, "output": 0},
    )  # fmt: skip
    t.ends(turn, "silent")


@case(
    "C34-qwenpaw-full-window", "agentscope-ai/QwenPaw, report on oversized prompts", "ac",
    "196,602 tokens sent into 196,608: accepted, and nothing comes back",
)  # fmt: skip
def full_window(t: Telling) -> None:
    _full_window(t, None)
    t.check(
        state="silent",
        fires={"silent_empty": "critical", "over_budget": "critical", "undercount": "warning"},
        silent=["over_window", "stalled", "overdue"],
        action="compact_fallback",
        against=["continue"],
        says=["196,602", "196,608", "0.60"],
        shows={"budget": 192_512, "reserve": 4_096, "reserve_assumed": True},
    )


@case(
    "C34-qwenpaw-own-reserve", "agentscope-ai/QwenPaw, report on oversized prompts", "ac",
    "The same with the reserve of 5% declared",
)  # fmt: skip
def own_reserve(t: Telling) -> None:
    _full_window(t, 9_830)
    t.check(
        state="silent",
        fires={"silent_empty": "critical", "over_budget": "critical", "undercount": "warning"},
        shows={"budget": 186_778, "reserve": 9_830, "reserve_assumed": False},
    )


@case(
    "C35-cjk-by-characters", "openclaw PR#114386", "c",
    "A quarter of the characters is far too little for Japanese and Chinese text",
    note="The report's three samples stand as three requests. Of the second it gives a range; the "
    "middle of it is told.",
)  # fmt: skip
def cjk(t: Telling) -> None:
    t.opened(model="MiniMax-M2.7")
    for local, real in ((6, 20), (15, 38), (100, 287)):
        t.reply(real, sent={"local": local}, content={"text_chars": 4})
    t.check(
        state="watch",
        fires={"undercount": "info"},
        silent=["overcount", "over_window", "over_budget", "meter_unreliable"],
        ratio=0.35,
        shows={"load.value": 287, "load.source": "provider", "window.value": 204_800},
    )


@case(
    "C36-cohub-images", "talesofai/cohub PR#122", "c",
    "45 images: a small count of tokens and a request that is refused for its size",
)  # fmt: skip
def images(t: Telling) -> None:
    t.opened()
    t.turn()
    for _ in range(2):
        t.fails("too_large", sent={"local": 54_000, "images": 45}, status=413)
    t.check(
        state="over",
        fires={"bytes_limit": "critical"},
        silent=["over_window", "over_budget", "stalled"],
        action="manual",
        against=["compact_fallback"],
        says=["45 images"],
        shows={"images": 45},
    )


@case(
    "C36-tau-image-estimate", "tau#452", "c",
    "One image of 2.5 MiB is estimated at 580,000 tokens",
    note="The window is not stated, only that 10 to 20% of it was used; 200,000 and 15% are the "
    "scale. The estimate warns that the next prompt may not fit and is never a crisis.",
)  # fmt: skip
def image_estimate(t: Telling) -> None:
    t.opened(window=200_000)
    t.turn()
    t.reply(30_000, content={"tool_calls": 1})
    t.message("tool", "image", tokens=580_000, bytes=2_621_440, name="screenshot")
    t.check(
        state="over",
        severity="warning",
        fires={"projected_over": "warning"},
        silent=["over_window", "over_budget", "jump", "meter_unreliable"],
        shows={"load.value": 30_000},
    )
    t.reply(33_000, content={"text_chars": 4})
    t.check(silent=["over_window", "over_budget", "projected_over"], shows={"load.value": 33_000})


@case(
    "C37-posthog-tools", "PostHog/posthog#52683", "c",
    "44 tools are 50,000 of 128,000 and stand there again after every compaction",
)  # fmt: skip
def tools(t: Telling) -> None:
    t.opened(window=128_000, tools=50_000)
    t.turn()
    t.check(
        state="healthy",
        silent=["floor_exceeds_budget", "reserve_exceeds_window"],
        shows={"floor": 50_000},
    )


@case(
    "C37-langchain-history-only", "langchain#34664", "c",
    "239k against a limit of 100k without a compaction",
    note="The report shows one such request; one is near the trigger by definition, a second "
    "without an attempt would be *saturated*.",
)  # fmt: skip
def history_only(t: Telling) -> None:
    t.opened(trigger={"tokens": 100_000})
    t.turn()
    t.reply(239_000, content={"tool_calls": 1})
    t.check(
        state="watch",
        fires={"near_trigger": "info"},
        silent=["over_window", "stalled"],
        shows={"load.value": 239_000, "headroom.trigger": -139_000, "window.value": None},
    )


@case(
    "C38-claude-code-1m", "anthropics/claude-code#73399", "c",
    "A model of a million shown as 200k: 109% and everything works",
)  # fmt: skip
def one_million(t: Telling) -> None:
    t.opened(model="claude-fable-5[1m]", window=200_000)
    for load in (177_200, 200_000, 219_313):
        turn = t.turn()
        t.reply(load, content={"text_chars": 4})
        t.ends(turn, "answered")
    t.check(
        state="unreliable",
        fires={"window_conflict": "warning"},
        silent=["over_window", "over_budget", "projected_over", "overdue", "meter_unreliable"],
        shows={
            "window.value": 1_000_000, "window.source": "evidence", "load.value": 219_313,
            "load.reliable": True,
        },
    )  # fmt: skip


@case(
    "C38-claude-code-early", "anthropics/claude-code#36014", "c",
    "A compaction at 17% of a million: early, and the window is right",
    note="That it comes early is no finding; the attempt shows its numbers.",
)  # fmt: skip
def early(t: Telling) -> None:
    t.opened(window=1_000_000)
    t.turn()
    t.reply(171_000, content={"tool_calls": 1})
    t.compacts(171_000, reported="ok")
    t.check(
        state="watch",
        fires={"load_pending": "info"},
        silent=["over_window", "window_conflict", "stalled", "looping", "overdue"],
        shows={"window.value": 1_000_000},
    )


@case(
    "C38-claude-code-relief", "anthropics/claude-code#72600", "c",
    "468,102 to 28,759: one ordinary compaction",
)  # fmt: skip
def real_relief(t: Telling) -> None:
    t.opened()
    t.turn()
    t.compacts(468_102, 28_759, reported="ok", took=101_385)
    t.check(
        state="watch",
        fires={"load_pending": "info"},
        silent=["stalled", "looping", "grew", "emptied", "ineffective"],
        outcomes=["reduced"],
        freed=[439_343],
    )


@case(
    "C40-ollama-half-window", "ollama/ollama#17427", "ca",
    "65,530 tokens are counted whole, a little more is cut to 32,770",
)  # fmt: skip
def half_window(t: Telling) -> None:
    t.opened(window=65_536)
    t.turn()
    t.reply(usage={"dialect": "llamacpp", "input": 65_530}, content={"tool_calls": 1})
    t.message("tool", "tool_result")
    t.reply(usage={"dialect": "llamacpp", "input": 32_770}, content={"text_chars": 4})
    t.check(
        state="over",
        fires={"provider_truncates": "critical"},
        silent=["over_window", "meter_unreliable"],
        action="compact_fallback",
        says=["32,770"],
    )


@case(
    "C40-ollama-default", "ollama/ollama#17889", "ca",
    "A prompt of about 7.9k, counted as 2,050 by a server with a window of 4,096",
)  # fmt: skip
def default_window(t: Telling) -> None:
    t.opened(window=4_096)
    t.turn()
    t.reply(
        usage={"dialect": "llamacpp", "input": 2_050}, sent={"local": 7_900},
        content={"text_chars": 4},
    )  # fmt: skip
    t.check(
        state="over",
        fires={"provider_truncates": "critical"},
        silent=["overcount"],
        says=["2,050"],
    )


@case(
    "C41-reasonix-error-text", "esengine/DeepSeek-Reasonix#9022", "ce",
    "0% used by the meter, 23 tokens above the window by the error",
    note="The case names the state over the window; the manual compaction that could not run makes "
    "it *stalled*, the earlier row.",
)  # fmt: skip
def error_text(t: Telling) -> None:
    t.opened()
    t.say("usage.update", used=0, size=1_048_576)
    t.turn()
    t.fails("overflow", stated_prompt=1_048_599, stated_window=1_048_576)
    t.check(
        state="over",
        fires={"over_window": "critical"},
        says=["1,048,599", "1,048,576"],
        action="compact_fallback",
        shows={"load.value": 1_048_599, "load.source": "error"},
    )
    t.compacts(1_048_641, trigger="manual", reported="failed", summarizer={"error": "overflow"})
    t.say("usage.update", used=0, size=1_048_576)
    t.check(
        state="stalled",
        fires={"over_window": "critical", "stalled": "critical"},
        silent=["looping"],
        action="compact_fallback",
        against=["compact_summarize"],
        shows={"load.value": 1_048_599},
    )


@case(
    "C42-codex-empty", "openai/codex#37879", "a",
    "Replies with nothing in them and no usage, at about 365k",
)  # fmt: skip
def empty(t: Telling) -> None:
    t.opened()
    t.turn()
    t.reply(365_000, content={"tool_calls": 1})
    for _ in range(3):
        t.empty(finish="stop")
    t.check(
        state="silent",
        fires={"silent_empty": "critical"},
        silent=["over_window", "over_budget"],
        action="compact_fallback",
        says=["cause unknown", "365,000"],
        shows={"empty_replies": 3, "load.value": 365_000},
    )


@case(
    "C58-openclaw-run-total", "openclaw PR#13863", "c",
    "Input 27 and 2,400,000 read from the cache: hardly one request",
    note="The window is not stated, so that nothing proves the sum to be a total; it is shown "
    "without a percentage and alarms nobody.",
)  # fmt: skip
def run_total(t: Telling) -> None:
    t.opened()
    t.turn()
    t.reply(
        usage={"dialect": "anthropic", "input": 27, "cache_read": 2_400_000},
        content={"text_chars": 4},
    )
    t.check(
        state="watch",
        fires={"window_unknown": "info"},
        silent=["over_window", "over_budget"],
        shows={"load.value": 2_400_027},
    )


@case(
    "C58-hotplex-above-window", "hrygo/hotplex#130", "c",
    "260k of a window of 200k, and the request was answered",
)  # fmt: skip
def above_window(t: Telling) -> None:
    t.opened(window=200_000)
    t.turn()
    t.reply(usage={"dialect": "anthropic", "input": 260_000}, content={"text_chars": 4})
    t.check(
        state="unreliable",
        fires={"meter_unreliable": "warning"},
        silent=["over_window", "over_budget", "near_trigger"],
        shows={"load.reliable": False},
    )


@case(
    "C60-codex-estimate", "openai/codex#24089 and a real session", "bc",
    "A total of 940,499 with parts of 0, before and after a compaction",
)  # fmt: skip
def estimate(t: Telling) -> None:
    t.transcript()
    t.opened(window=258_400)
    t.turn()
    t.reply(usage={"dialect": "codex", "input": 212_134}, content={"tool_calls": 1})
    nothing = {"dialect": "codex", "input": 0, "output": 0, "total": 940_499}
    t.reply(usage=nothing, content={"tool_calls": 1})
    t.check(
        state="unreliable",
        fires={"meter_unreliable": "warning"},
        silent=["over_window", "over_budget", "projected_over"],
        shows={"load.reliable": False, "load.value": 940_499},
    )
    t.compacts(212_134, reported="ok")
    t.reply(usage=nothing, content={"tool_calls": 1})
    t.check(state="unreliable", silent=["over_window", "over_budget", "stalled", "looping", "grew"])
    t.reply(usage={"dialect": "codex", "input": 48_687}, content={"tool_calls": 1})
    t.check(
        state="healthy",
        outcomes=["reduced"],
        freed=[163_447],
        relief=["relieved"],
        shows={"load.value": 48_687},
    )


@case(
    "C61-oh-my-pi-stale-anchor", "can1357/oh-my-pi#8887", "ca",
    "A reply to a request from before the compaction is read as the size after it",
)  # fmt: skip
def stale_anchor(t: Telling) -> None:
    t.opened()
    t.turn()
    late = t.ask(local=360_000)
    attempt = t.compacts(reported="ok")
    t.reply(363_095, request=late, content={"tool_calls": 1})
    t.say("latch.set", latch="maintenance", kind="no_gain", scope="chat", attempt=attempt)
    t.check(
        silent=["stalled", "looping", "over_window", "grew"],
        shows={"load.source": "pending", "load.value": None},
    )
    t.reply(139_025, content={"tool_calls": 1})
    t.check(
        state="watch",
        silent=["stalled", "looping", "grew", "latched"],
        latches=[["no_gain", False]],
        action="clear_latch",
        shows={"load.value": 139_025, "load.source": "provider"},
        relief=["relieved"],
    )


@case(
    "C62-orchestrator-cumulative", "Enderfga/claw-orchestrator#75", "c",
    "33k, 67k, 101k for three equal turns: a running total",
)  # fmt: skip
def cumulative(t: Telling) -> None:
    t.opened()
    for total in (33_000, 67_000, 101_000):
        turn = t.turn()
        t.reply(usage={"dialect": "codex", "input": total}, content={"text_chars": 4})
        t.ends(turn, "answered")
    t.check(
        state="unreliable",
        fires={"cumulative_usage": "warning"},
        silent=["over_window", "over_budget", "overdue", "stalled"],
        says=["33,000", "101,000"],
    )


@case(
    "C63-codegraff-160-times", "justrach/codegraff#88", "ca",
    "A local count of 7,667,872 right after a request of 45,543",
    note="The case says that the meter is unreliable. Without a window nothing says what a count "
    "may be at most; the provider's count stays the load and the local one alarms nobody.",
)  # fmt: skip
def times_160(t: Telling) -> None:
    t.opened()
    t.turn()
    t.reply(47_872, content={"tool_calls": 1})
    t.compacts(reported="ok")
    t.reply(
        usage={"dialect": "openai", "input": 45_543, "cache_read": 44_544, "total": 45_864},
        content={"text_chars": 4},
    )
    t.compacts(7_667_872, reported="ok")
    t.check(
        state="watch",
        silent=["over_window", "over_budget", "looping", "stalled", "grew"],
    )


@case(
    "C63-codegraff-empty-summary", "justrach/codegraff#379", "ca",
    "An empty summary, the history unchanged at 218,185",
)  # fmt: skip
def empty_summary(t: Telling) -> None:
    t.opened()
    t.turn()
    t.reply(218_185, content={"tool_calls": 1})
    t.compacts(218_185, 218_185, reported="unchanged", summarizer={"calls": 1, "error": "empty"})
    t.reply(218_862, content={"tool_calls": 1})
    t.check(
        state="stalled",
        severity="warning",
        fires={"summarizer_failing": "warning"},
        silent=["meter_unreliable", "looping", "over_window", "emptied"],
        outcomes=["summarizer_failed"],
        relief=["not_relieved"],
        action="compact_fallback",
        shows={"load.value": 218_862},
    )


@case(
    "C67-sub-agent-usage", "Mng-dev-ai/agentrove PR#231", "bc",
    "A sub-agent's 150k between two requests of its parent of 60k and 61k",
)  # fmt: skip
def sub_agent(t: Telling) -> None:
    t.chat = "parent"
    t.opened()
    t.turn()
    t.reply(60_000, content={"tool_calls": 1})
    t.chat = "child"
    t.opened(parent="parent")
    t.turn("task")
    t.reply(150_000, content={"text_chars": 4})
    t.say("chat.closed")
    t.check(state="watch", shows={"load.value": 150_000, "parent": "parent"})
    t.chat = "parent"
    t.reply(61_000, content={"text_chars": 4})
    t.check(
        state="watch",
        fires={"window_unknown": "info"},
        silent=["jump", "looping", "cumulative_usage", "meter_unreliable"],
        shows={"load.value": 61_000, "compactions": 0, "requests": 2},
        counts={},
    )


@case(
    "C61-gauge-from-before", "sirmalloc/ccstatusline PR#524", "ca",
    "107% shown after a compaction, while the next request counts 105k",
)  # fmt: skip
def gauge_from_before(t: Telling) -> None:
    t.opened()
    t.turn()
    t.say("usage.update", used=292_000, size=272_000)
    t.check(state="over", fires={"over_window": "critical"}, shows={"load.value": 292_000})
    t.compacts(reported="ok")
    t.say("usage.update", used=292_000, size=272_000)
    t.check(
        fires={"meter_unreliable": "warning"},
        silent=["over_window", "over_budget", "stalled", "looping"],
        severity="warning",
        shows={"load.reliable": False},
    )
    t.reply(105_000, content={"tool_calls": 1})
    t.check(
        state="healthy",
        silent=["over_window", "meter_unreliable", "stalled"],
        relief=["relieved"],
        shows={"load.value": 105_000},
    )
