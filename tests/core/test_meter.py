"""The load: its source, what is pending, what is projected, what the parts add up to."""

from __future__ import annotations

from .story import Story


def test_a_reading_keeps_where_it_comes_from() -> None:
    story = Story().opened()
    request = story.ask(local=48_000)
    assert (story.row.load.value, story.row.load.source) == (48_000, "local")
    story.reply(50_000, request=request)
    load = story.row.load
    assert (load.value, load.source, load.request, load.at) == (
        50_000,
        "provider",
        request,
        story.at,
    )


def test_usage_that_is_missing_leaves_the_local_count() -> None:
    story = Story().opened().reply(None, local=48_000)
    assert (story.row.load.value, story.row.load.source) == (48_000, "local")


def test_nothing_known_is_unknown_and_not_zero() -> None:
    row = Story().opened().reply(None).row
    assert row.load.value is None
    assert row.load.source == "unknown"
    assert row.headroom.window is None
    assert row.projection is None


def test_an_agent_s_gauge_is_a_reading_and_names_the_window() -> None:
    story = Story().say("chat.opened").say("usage.update", used=40_000, size=128_000)
    assert (story.row.load.value, story.row.load.source) == (40_000, "agent")
    assert story.row.window.value == 128_000


def test_a_provider_s_reading_is_not_overwritten_by_a_gauge() -> None:
    story = Story().opened().reply(50_000).say("usage.update", used=40_000)
    assert story.row.load.value == 50_000


class TestProjection:
    def test_it_is_the_last_reading_and_what_was_added_since_its_request(self) -> None:
        story = Story().opened()
        request = story.ask()
        story.message(300)
        story.reply(50_000, request=request)
        story.message(10_162)
        assert story.row.projection == 50_000 + 300 + 10_162
        assert story.row.load.value == 50_000

    def test_above_the_budget_it_warns_before_the_next_request_fails(self) -> None:
        story = Story().opened(window=121_600, reserve=0).reply(117_322)
        story.message(4_000)
        assert "projected_over" not in story.codes()
        story.message(6_162)
        assert story.severity("projected_over") == "warning"
        assert "127,484" in story.finding("projected_over").sentence
        assert story.is_ == "over"


class TestAfterACompaction:
    def test_the_load_is_pending_with_the_agent_s_count_as_an_estimate(self) -> None:
        story = Story().opened().reply(160_500).compacts(160_500, 40_000)
        load = story.row.load
        assert (load.value, load.source) == (40_000, "pending")
        assert story.row.headroom.budget is None
        assert story.codes() == {"load_pending"}
        assert sum(part.tokens for part in story.row.segments) == 40_000

    def test_a_reply_to_a_request_built_before_it_says_nothing(self) -> None:
        story = Story().opened(window=400_000).reply(350_000)
        before = story.ask()
        story.compacts(350_000, 138_000)
        story.reply(363_095, request=before)
        assert story.row.load.source == "pending"
        story.reply(139_025)
        assert (story.row.load.value, story.row.load.source) == (139_025, "provider")
        assert story.state.compactions.recent[-1].relief == "relieved"
        assert "stalled" not in story.codes()

    def test_an_attempt_that_changed_nothing_leaves_the_reading(self) -> None:
        story = Story().opened().reply(160_500)
        story.compacts(160_500, 160_500, summarizer={"calls": 1, "error": "timeout"})
        assert (story.row.load.value, story.row.load.source) == (160_500, "provider")

    def test_a_history_count_becomes_a_prompt_by_the_fixed_part(self) -> None:
        story = Story().opened(history_limit=100_000, system=5_000, tools=4_000).reply(120_000)
        story.compacts(110_000, 30_000, scope="history")
        assert story.row.load.value == 39_000
        assert story.row.history.value == 30_000


class TestCalibration:
    def test_it_is_the_median_of_full_requests(self) -> None:
        story = Story().opened()
        for local in (30_000, 31_000, 90_000):
            story.reply(50_000, local=local)
        assert story.row.calibration == 0.62

    def test_delta_requests_are_left_out(self) -> None:
        story = Story().opened().reply(50_000, local=16, sent={"delta": True})
        assert story.row.calibration is None
        assert story.row.load.value == 50_000

    def test_it_keeps_the_last_twenty_pairs(self) -> None:
        story = Story().opened()
        for _ in range(30):
            story.reply(50_000, local=25_000)
        for _ in range(20):
            story.reply(50_000, local=50_000)
        assert story.row.calibration == 1.0


class TestForecast:
    def test_it_is_the_room_by_the_median_growth(self) -> None:
        story = Story().opened(trigger={"tokens": 100_000})
        for load in (50_000, 54_000, 59_000, 63_000):
            story.reply(load)
        assert story.row.forecast == 9

    def test_fewer_than_three_steps_forecast_nothing(self) -> None:
        story = Story().opened(trigger={"tokens": 100_000}).reply(50_000).reply(54_000)
        assert story.row.forecast is None

    def test_without_growth_there_is_none(self) -> None:
        story = Story().opened()
        for load in (50_000, 49_000, 48_000, 47_000):
            story.reply(load)
        assert story.row.forecast is None

    def test_the_fall_of_a_compaction_is_no_growth(self) -> None:
        story = Story().opened(trigger={"tokens": 100_000})
        for load in (90_000, 92_000, 94_000, 96_000):
            story.reply(load)
        story.compacts(96_000, 20_000).reply(20_400)
        assert story.state.meter.growth == [2_000, 2_000, 2_000]


class TestSegments:
    def test_parts_smaller_than_the_load_leave_an_unassigned_rest(self) -> None:
        story = Story().opened(system=5_000, tools=4_000).message(1_000).reply(12_000)
        parts = {part.kind: part.tokens for part in story.row.segments}
        assert parts == {"system": 5_000, "tools": 4_000, "current": 1_000, "unassigned": 2_000}

    def test_parts_larger_than_the_load_are_scaled_and_marked(self) -> None:
        story = Story().opened(system=7_000, tools=4_000).message(1_000).reply(10_001)
        parts = story.row.segments
        assert sum(part.tokens for part in parts) == 10_001
        assert all(part.estimate for part in parts)

    def test_without_a_snapshot_a_past_turn_is_a_topic(self) -> None:
        story = Story().opened().turn("t1").message(1_000).ends(turn="t1")
        story.turn("t2").message(200).reply(1_200)
        parts = {part.kind: part.tokens for part in story.row.segments}
        assert parts == {"topics": 1_000, "current": 200}


def test_a_jump_names_its_largest_item_and_ends_with_the_next_answer() -> None:
    story = Story().opened(window=131_072).turn().reply(16_426)
    story.message(500).message(60_000, name="read_page", role="tool")
    story.reply(77_000)
    assert "read_page" in story.finding("jump").sentence
    story.ends()
    assert "jump" not in story.codes()


def test_a_reading_of_another_source_is_no_jump() -> None:
    story = Story().opened()
    request = story.ask(local=30_000)
    story.reply(120_000, request=request)
    assert "jump" not in story.codes()


def test_every_reading_is_a_point_of_the_series() -> None:
    story = Story().opened().reply(50_000).reply(52_000).compacts(52_000, 20_000)
    points = story.changes.readings
    assert [point.load for point in points] == [50_000, 52_000, 20_000]
    assert points[-1].source == "pending"
    assert points[0].budget == 195_904


def test_the_heaviest_items_are_kept_and_marked_when_they_leave() -> None:
    story = Story().opened()
    for index in range(60):
        story.message(100 + index * 7 % 59, id=f"i{index}")
    story.message(90_000, id="big", name="dump")
    heavy = story.page.heavy
    assert len(heavy) == 20
    assert (heavy[0].id, heavy[0].in_context) == ("big", True)
    story.reply(100_000).compacts(100_000, 20_000, removed=["big"])
    assert story.page.heavy[0].in_context is False
