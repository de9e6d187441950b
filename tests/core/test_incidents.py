"""The incidents the product exists for, event by event, and the chats that must stay quiet."""

from __future__ import annotations

from random import Random

from .story import MINUTE, Story

UTILITY = {"model": "glm-flash", "provider": "zai", "window": 200_000}
CLAUDE = {"dialect": "anthropic", "output": 60}


def agent_zero() -> Story:
    story = Story().opened(
        trigger={"tokens": 140_000, "scope": "history"},
        history_limit=140_000,
        system=6_400,
        tools=3_100,
        utility=UTILITY,
    )
    return story.say(
        "history.snapshot",
        revision="r0",
        history=140_161,
        topics=[{"id": "past", "tokens": 113_004}],
        current={"tokens": 27_157},
    )


def empty_summary(story: Story, before: int) -> Story:
    return story.compacts(
        before,
        before,
        scope="history",
        reported="stalled",
        steps=[{"step": "topics_to_bulk", "before": before, "after": before, "calls": 1}],
        summarizer={**UTILITY, "calls": 1, "input": 9_700, "output": 0},
    )


def agent_zero_stopped() -> Story:
    """Three passes that free nothing, five unusable replies, the agent stops."""
    story = agent_zero().turn().message(100)
    for _ in range(3):
        empty_summary(story, 140_261)
    for _ in range(5):
        story.reply(149_800)
        story.message(None, role="assistant", unusable="malformed")
    story.say("agent.stopped", reason="unusable replies in a row", count=5, limit=5)
    return story.ends("stopped")


class TestAgentZeroWithAnEmptyUtility:
    def test_one_failed_pass_names_the_summarizer_but_is_no_crisis(self) -> None:
        story = empty_summary(agent_zero().turn().message(100), 140_261)
        attempt = story.state.compactions.recent[-1]
        assert attempt.outcome == "summarizer_failed"
        assert attempt.error_class == "empty"
        assert attempt.relief == "not_relieved"
        assert story.severity("summarizer_failing") == "warning"
        assert "stalled" not in story.codes()

    def test_two_passes_above_the_declared_history_limit_are_stalled(self) -> None:
        story = agent_zero().turn().message(100)
        empty_summary(empty_summary(story, 140_261), 140_261)
        assert story.is_ == "stalled"
        assert story.severity("stalled") == "critical"

    def test_the_headline_tells_numbers_cause_and_action(self) -> None:
        story = agent_zero_stopped()
        assert story.is_ == "stopped"
        assert story.row.unusable_replies == 5
        text = story.page.headline
        assert text.startswith("Stopped: 3 compactions freed 0 of 140,261 history tokens")
        assert "glm-flash answers nothing (3 summarizer calls)" in text
        assert "5 unusable replies ended the turn" in text
        assert "the user has waited since 00:00 UTC" in text
        assert text.endswith("then continue the unanswered turn.")
        advice = story.page.headline_advice
        assert advice is not None and advice.action == "compact_fallback" and advice.available

    def test_failed_summaries_are_stalled_and_not_a_loop(self) -> None:
        assert "looping" not in agent_zero_stopped().codes()

    def test_clearing_a_latch_is_discouraged_because_there_is_none(self) -> None:
        found = agent_zero_stopped().finding("stalled")
        assert [a.action for a in found.discouraged] == ["compact_summarize", "clear_latch"]

    def test_a_fallback_recovers_by_the_next_reading_and_answer_not_by_the_click(self) -> None:
        story = agent_zero_stopped().command("compact_fallback")
        story.compacts(
            140_261,
            112_000,
            trigger="forced",
            scope="history",
            reported="fell_back",
            steps=[{"step": "evict", "before": 140_261, "after": 112_000, "calls": 0}],
            lossy=True,
        )
        assert story.is_ == "stopped"
        story.say("command.progress", command="cmd1", state="succeeded", before=140_261)
        assert story.is_ == "recovering"
        story.turn("t2", "continuation").reply(121_500)
        assert story.is_ == "recovering"
        assert story.state.compactions.recent[-1].relief == "relieved"
        story.ends(turn="t2")
        assert story.is_ == "healthy"
        assert story.row.waiting_since is None

    def test_a_recovery_that_stops_again_is_stopped_again(self) -> None:
        story = agent_zero_stopped().command("compact_fallback")
        story.say("command.progress", command="cmd1", state="succeeded")
        story.turn("t2", "continuation")
        story.say("agent.stopped", reason="again", count=5).ends("stopped", "t2")
        assert story.is_ == "stopped"


class TestAgentZeroWithoutQuota:
    def failing(self, turns: int) -> Story:
        story = agent_zero()
        for index in range(turns):
            before = 140_261 + index * 2_000
            story.turn(f"t{index}")
            story.compacts(
                before,
                before,
                scope="history",
                reported="error",
                summarizer={**UTILITY, "calls": 1, "input": 9_700, "error": "quota"},
            )
            story.message(1_956, role="system")
            story.ends("error", f"t{index}", "402 no quota")
        return story

    def test_two_dead_turns_are_critical_and_name_the_summarizer(self) -> None:
        story = self.failing(2)
        assert story.severity("turns_failing") == "critical"
        assert "has no quota left" in story.page.headline
        assert story.is_ == "stopped"

    def test_one_dead_turn_is_not_yet_a_row(self) -> None:
        assert "turns_failing" not in self.failing(1).codes()

    def test_the_traceback_makes_the_history_grow_and_that_is_seen(self) -> None:
        story = self.failing(3)
        assert story.row.history.value == 140_161 + 3 * 1_956
        assert story.finding("summarizer_failing").severity == "critical"
        assert "3 calls, 29,100 input tokens" in story.finding("summarizer_failing").sentence


def maka() -> Story:
    """Nothing foldable with 0 calls sets a latch; a second pair lands; overflow; blocked."""
    story = Story().opened(trigger={"ratio": 0.8, "inclusive": True}, system=9_800, tools=7_400)
    story.turn().message(400)
    story.message(60, role="assistant", kind="tool_call", calls=["c1"])
    story.message(149_000, role="tool", kind="tool_result", answers=["c1"])
    story.compacts(
        166_460,
        166_460,
        attempt="first",
        reported="fail_open",
        reason="no_safe_completed_span",
        summarizer={"model": "kimi", "calls": 0},
    )
    return story.say(
        "latch.set",
        latch="L1",
        scope="turn",
        attempt="first",
        reason="no_safe_completed_span",
        bypass=["manual"],
        release={"turn_end": True},
    )


def maka_blocked() -> Story:
    story = maka()
    story.message(60, role="assistant", kind="tool_call", calls=["c2"])
    story.message(31_500, role="tool", kind="tool_result", answers=["c2"])
    story.fails("overflow", status=400)
    story.compacts(
        198_020,
        198_020,
        attempt="second",
        trigger="reactive",
        reported="skipped",
        reason="compaction is off for this turn",
        summarizer={"model": "kimi", "calls": 0},
    )
    return story


class TestMaka:
    def test_a_structural_latch_is_watched_and_called_unjustified(self) -> None:
        story = maka()
        assert story.state.compactions.recent[-1].outcome == "nothing_foldable"
        latch = story.page.latches[0]
        assert (latch.kind, latch.justified, latch.calls) == ("structural", False, 0)
        assert story.severity("latched_unjustified") == "warning"
        assert story.is_ == "watch"

    def test_a_rescue_sent_away_by_it_is_critical(self) -> None:
        story = maka_blocked()
        assert story.is_ == "blocked"
        assert story.severity("latched_unjustified") == "critical"
        assert "it stopped the rescue after a context overflow" in story.page.headline
        advice = story.page.headline_advice
        assert advice is not None and advice.action == "clear_latch"
        assert advice.args == {"latch": "L1", "then": "compact"}

    def test_the_attempt_that_the_latch_sent_away_is_not_counted(self) -> None:
        assert maka_blocked().state.compactions.no_relief == 1

    def test_clearing_it_and_compacting_recovers_the_chat(self) -> None:
        story = maka_blocked().command("clear_latch")
        story.say("latch.cleared", latch="L1", how="operator", command="cmd1")
        story.compacts(
            198_020,
            51_000,
            trigger="manual",
            summarizer={"model": "kimi", "calls": 1, "input": 149_000, "output": 500},
            removed=["m5", "m6"],
        )
        story.say("command.progress", command="cmd1", state="succeeded")
        assert story.is_ == "recovering"
        story.reply(51_300).ends()
        assert story.is_ == "healthy"
        cleared = next(view for view in story.changes.latches.values() if view.latch == "L1")
        assert (cleared.cleared_how, cleared.cleared_by) == ("operator", "op")

    def test_the_turn_s_latch_ends_when_the_next_turn_begins(self) -> None:
        story = maka().ends("error")
        assert story.row.latches
        story.turn("t2")
        assert story.row.latches == ()


def qwenpaw() -> Story:
    story = Story().opened(window=196_608, trigger={"ratio": 0.8}, system=7_200, tools=5_100)
    return story.turn().reply(100_000, local=60_000)


class TestQwenPaw:
    def test_a_full_window_with_no_tokens_back_is_silent_for_that_reason(self) -> None:
        story = qwenpaw().empty(196_602, local=117_961).ends("silent")
        assert story.is_ == "silent"
        found = story.finding("silent_empty")
        assert found.severity == "critical"
        assert "196,602 leaves no room in the window of 196,608" in found.sentence
        assert story.severity("over_budget") == "critical"
        assert story.row.calibration is not None and round(story.row.calibration, 2) == 0.60
        assert "counts only 0.60" in story.finding("undercount").sentence
        assert [a.action for a in found.discouraged] == ["continue"]

    def test_a_reply_with_room_left_is_the_provider_s_fault_and_a_warning(self) -> None:
        story = qwenpaw().empty(100_400, local=99_000).ends("silent")
        assert story.severity("silent_empty") == "warning"
        assert "had room" in story.finding("silent_empty").sentence
        assert "over_budget" not in story.codes()


def claude_code() -> Story:
    """A transcript: 200,000 from the table, one automatic compaction near 155,000."""
    story = Story(read_only=True).say("chat.opened", title="session")
    for turn, load in enumerate((24_000, 80_000, 154_992)):
        story.turn(f"t{turn}")
        story.reply(
            None,
            model="claude-sonnet-4-5-20250929",
            usage={**CLAUDE, "input": 8, "cache_read": load - 908, "cache_write": 900},
        )
        story.ends(turn=f"t{turn}")
    return story


class TestClaudeCode:
    def test_its_own_trigger_is_not_taken_for_trouble(self) -> None:
        story = claude_code()
        for turn in range(4):
            story.turn(f"u{turn}").reply(
                None, usage={**CLAUDE, "input": 160_000 + turn * 2_300, "cache_read": 0}
            )
        assert story.is_ == "watch"
        assert story.codes() == {"near_trigger"}

    def test_one_automatic_compaction_with_relief_is_healthy(self) -> None:
        story = claude_code().compacts(154_992, None, reported="compact_boundary")
        assert story.row.load.source == "pending"
        story.turn("t9").reply(None, usage={**CLAUDE, "input": 49_761, "cache_read": 0})
        story.ends(turn="t9")
        last = story.row.last_compaction
        assert last is not None
        assert (last.before, last.after, last.outcome) == (154_992, 49_761, "reduced")
        assert last.relief == "relieved"
        assert story.row.window.value == 200_000
        assert story.row.window.source == "table"
        assert (story.row.trigger.value, story.row.trigger.source) == (154_992, "learned")
        assert story.is_ == "healthy"

    def test_the_load_is_the_last_request_and_never_a_sum(self) -> None:
        assert claude_code().row.load.value == 154_992


def test_a_population_of_healthy_chats_alarms_nobody() -> None:
    for seed in range(40):
        story = healthy_life(Random(seed))
        critical = [view for view in story.changes.findings.values() if view.severity == "critical"]
        assert critical == [], (seed, critical)
        assert story.changes.incidents == {}


def healthy_life(chance: Random) -> Story:
    """Turns with tool calls, growth, an ordinary compaction at the trigger, now and then."""
    window = chance.choice((128_000, 200_000, 1_000_000))
    ratio = chance.choice((0.6, 0.7, 0.75))
    trigger = {"tokens": int(ratio * window), "inclusive": chance.random() < 0.5}
    declared = trigger if chance.random() < 0.6 else None
    story = Story().opened(window=window, trigger=declared, system=6_000, tools=9_000)
    load, line = 15_000, int(ratio * window)
    local = chance.uniform(0.9, 1.15)
    for number in range(60):
        turn = f"t{number}"
        story.wait(chance.randint(0, 20) * MINUTE).turn(turn)
        load += story_message(story, chance.randint(50, 900))
        if load >= line:
            kept = chance.randint(15_000, line // 3)
            story.compacts(load, kept, summarizer={"calls": 1, "input": load, "output": 900})
            load = kept
        for step in range(chance.randint(0, 4)):
            call = f"{turn}-{step}"
            story.reply(load, local=int(load * local), content={"tool_calls": 1})
            story.message(60, role="assistant", kind="tool_call", calls=[call])
            load += 60 + story_message(
                story, chance.randint(200, window // 20), role="tool", answers=[call]
            )
        story.reply(load, local=int(load * local))
        load += story_message(story, chance.randint(80, 900), role="assistant")
        story.ends(turn=turn)
    return story


def story_message(story: Story, tokens: int, **fields: object) -> int:
    story.message(tokens, **fields)
    return tokens
