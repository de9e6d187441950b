"""Every finding twice: the smallest story where it fires, and the same one a step short of it.

Each function is named by its code; ``on`` tells which of the two is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from .story import MINUTE, Story

PAIRS: dict[str, Callable[[bool], Story]] = {}
UTILITY = {"model": "small", "provider": "p", "window": 64_000}


def pair(story: Callable[[bool], Story]) -> Callable[[bool], Story]:
    PAIRS[story.__name__] = story
    return story


# Broken.


def _order(*items: dict[str, object], revision: str) -> dict[str, object]:
    return {"revision": revision, "order": list(items), "current": {"tokens": 100}}


def _member(id: str, role: str, kind: str = "text", **more: object) -> dict[str, object]:
    return {"id": id, "role": role, "kind": kind, "tokens": 10, "in": "current", **more}


@pair
def broken_pairs(on: bool) -> Story:
    """A compaction takes the call and leaves its result, or takes both."""
    story = Story().opened().turn().message(9, id="u")
    story.message(9, id="c", role="assistant", kind="tool_call", calls=["k"])
    story.message(9, id="r", role="tool", kind="tool_result", answers=["k"])
    return story.compacts(5_000, 2_000, removed=["c"] if on else ["c", "r"])


@pair
def lost_system(on: bool) -> Story:
    """The next snapshot has no system item, or still has it."""
    system, user = _member("s", "system"), _member("u", "user")
    story = Story().opened().turn()
    story.say("history.snapshot", **_order(system, user, revision="1"))
    rest = (user,) if on else (system, user)
    return story.say("history.snapshot", **_order(*rest, revision="2"))


@pair
def lost_tail(on: bool) -> Story:
    """A compaction takes the newest user message, or only the one before."""
    story = Story().opened().turn().message(9, id="u1").message(9, id="a1", role="assistant")
    story.message(9, id="u2")
    return story.compacts(5_000, 2_000, removed=["u1", "a1", *(["u2"] if on else [])])


@pair
def stale_tail(on: bool) -> Story:
    """After a compaction the older user message stands last, or where it was."""
    story = Story().opened().turn().message(9, id="u1").message(9, id="a1", role="assistant")
    story.message(9, id="u2").compacts(5_000, 2_000, removed=["a1"])
    first, newest = _member("u1", "user"), _member("u2", "user")
    order = (newest, first) if on else (first, newest)
    return story.say("history.snapshot", **_order(*order, revision="1"))


# Stopped, hung.


@pair
def stopped(on: bool) -> Story:
    """The agent ends the turn by itself, or the user does."""
    story = Story().opened().turn()
    return (
        story.say("agent.stopped", reason="limit").ends("stopped")
        if on
        else story.ends("cancelled")
    )


@pair
def turns_failing(on: bool) -> Story:
    """A second turn in a row ends in an error, or the first alone does."""
    story = Story().opened().turn("t1").fails("provider").ends("error", "t1")
    return story.turn("t2").fails("provider").ends("error", "t2") if on else story


@pair
def unanswered(on: bool) -> Story:
    """Ten minutes of nothing, or a moment less."""
    story = Story().opened().turn()
    left = 10 * MINUTE + story.at
    story.ends("error")
    return story.tick(after=left - story.at - (0 if on else 1))


@pair
def hung(on: bool) -> Story:
    """Three minutes without an answer, or a moment less."""
    story = Story().opened().turn()
    story.ask()
    return story.tick(after=3 * MINUTE - (0 if on else 1))


# Silent, blocked.


@pair
def silent_empty(on: bool) -> Story:
    """A reply without anything in it, or with a call and no text."""
    content = {"text_chars": 0, "tool_calls": 0 if on else 1}
    return Story().opened().turn().reply(9_000, content=content)


@pair
def repeating(on: bool) -> Story:
    """Three times the same reply, or twice and then another."""
    story = Story().opened().turn()
    for hash in ("h", "h", "h" if on else "other"):
        story.reply(9_000).message(9, role="assistant", hash=hash)
    return story


@pair
def nothing_visible(on: bool) -> Story:
    """The turn ends with thinking alone, or with one character after it."""
    content = {"text_chars": 0 if on else 1, "thinking_chars": 900}
    return Story().opened().turn().reply(9_000, content=content).ends("silent")


def _latched(calls: int, justified: bool) -> Story:
    story = Story().opened(trigger={"tokens": 150_000}).turn().reply(160_000)
    error = {"summarizer": {"calls": calls, "error": "quota"}} if calls else {}
    reported = "failed" if calls else "nothing_to_fold"
    story.compacts(160_000, 160_000, attempt="a", reported=reported, **error)
    kind = "summarizer" if justified else "structural"
    return story.say("latch.set", latch="L", kind=kind, scope="chat", attempt="a")


@pair
def latched_unjustified(on: bool) -> Story:
    """Set without a call of the summarizer, or after one that failed."""
    return _latched(0, False) if on else _latched(1, True)


@pair
def latched(on: bool) -> Story:
    """Set after a failed call, or not for that."""
    return _latched(1, True) if on else _latched(0, False)


# Stalled, looping.


@pair
def stalled(on: bool) -> Story:
    """Two compactions that free nothing, or one while there is still room."""
    story = Story().opened(trigger={"tokens": 150_000}).turn()
    for _ in range(2 if on else 1):
        story.reply(160_000).compacts(160_000, 160_000)
    return story


@pair
def emptied(on: bool) -> Story:
    """A blank in place of the content, or a summary."""
    story = Story().opened().turn().reply(150_000)
    return story.compacts(150_000, 20_000, summarizer={"calls": 1}, emptied=True if on else None)


@pair
def summarizer_failing(on: bool) -> Story:
    """The summarizer's call fails, or nothing is there to call it for."""
    summarizer = {"calls": 1, "error": "empty"} if on else {"calls": 0}
    return Story().opened().turn().compacts(150_000, 150_000, summarizer=summarizer)


@pair
def grew(on: bool) -> Story:
    """One token more than a hundredth above, or exactly that."""
    return Story().opened().turn().compacts(100_000, 101_001 if on else 101_000)


@pair
def looping(on: bool) -> Story:
    """Three compactions within one turn, or two."""
    story = Story().opened(trigger={"tokens": 150_000}).turn().reply(160_000)
    for _ in range(3 if on else 2):
        story.compacts(None, None).reply(155_000)
    return story


# Cannot fit.


@pair
def floor_exceeds_budget(on: bool) -> Story:
    """System prompt and tools one token above the budget, or exactly that."""
    tools = 90_001 if on else 90_000
    return Story().opened(window=100_000, reserve=10_000, tools=tools, system=0).turn()


@pair
def reserve_exceeds_window(on: bool) -> Story:
    """A reserve of nine tenths of the window, or a token less."""
    return Story().opened(window=100_000, reserve=90_000 if on else 89_999)


def _summary(wanted: int, output: int | None = None) -> Story:
    story = Story().opened(utility=UTILITY).turn()
    story.say("compaction.started", attempt="a", trigger="proactive", scope="prompt")
    story.ask(purpose="utility", attempt="a", local=wanted, max_output=output)
    return story


@pair
def summarizer_too_small(on: bool) -> Story:
    """A token more to summarise than its window holds, or exactly that."""
    return _summary(64_001 if on else 64_000)


@pair
def summary_reserve(on: bool) -> Story:
    """Input and output together a token above its window, or exactly that."""
    return _summary(60_000, 4_001 if on else 4_000)


# Over.


@pair
def over_window(on: bool) -> Story:
    """The provider refuses for the size, or for another reason."""
    return Story().opened().turn().fails("overflow" if on else "invalid")


@pair
def over_budget(on: bool) -> Story:
    """A token above the budget, or exactly that."""
    return Story().opened(reserve=10_000).turn().reply(190_001 if on else 190_000)


@pair
def projected_over(on: bool) -> Story:
    """What was added since reaches over the budget by a token, or just not."""
    story = Story().opened(window=131_072, reserve=9_472).turn().reply(110_000)
    story.message(11_601 if on else 11_600, role="tool", kind="tool_result", answers=["x"])
    story.ask()
    return story


@pair
def provider_truncates(on: bool) -> Story:
    """The count stands still over three requests while items come, or while none do."""
    story = Story().opened().turn()
    for _ in range(4):
        story.reply(131_072)
        if on:
            story.message(4_000)
    return story


@pair
def bytes_limit(on: bool) -> Story:
    """A byte above the agent's own limit, or exactly that."""
    size = 1_000_001 if on else 1_000_000
    story = Story().opened(bytes_limit=1_000_000).turn()
    return story.say("history.snapshot", revision="1", request_bytes=size)


# Saturated.


@pair
def over_trigger(on: bool) -> Story:
    """A second request above the declared trigger without an attempt, or the first."""
    story = Story().opened(trigger={"tokens": 150_000})
    story.turn("t1").reply(160_000).ends(turn="t1").turn("t2")
    return story.reply(160_100) if on else story


@pair
def overdue(on: bool) -> Story:
    """A third one, or two."""
    story = Story().opened(trigger={"tokens": 150_000})
    for number in range(3 if on else 2):
        story.turn(f"t{number}").reply(160_000 + number).ends(turn=f"t{number}")
    return story


@pair
def trigger_unreachable(on: bool) -> Story:
    """The provider refuses a size below the trigger, or one above it."""
    story = Story().opened(window=1_000_000, trigger={"tokens": 950_000}).turn()
    return story.fails("overflow", stated_prompt=940_000 if on else 960_000)


# Unreliable.


@pair
def meter_unreliable(on: bool) -> Story:
    """The agent counts exactly the window, or a token less."""
    return Story().opened().turn().say("usage.update", used=200_000 - (not on), size=200_000)


@pair
def undercount(on: bool) -> Story:
    """Three requests counted at just below four fifths, or at that."""
    story = Story().opened(reserve=10_000, trigger={"tokens": 150_000}).turn()
    for _ in range(3):
        story.reply(140_000, local=111_999 if on else 112_000)
    return story


@pair
def window_conflict(on: bool) -> Story:
    """The agent believes in 2.1% more than the table, or in 2% more."""
    return Story().opened(model="gpt-4o", window=131_000 if on else 130_600).turn().reply(9_000)


@pair
def cumulative_usage(on: bool) -> Story:
    """Equal steps that no item explains, or that items do."""
    story = Story().opened().turn()
    for number in range(1, 5):
        if not on:
            story.message(20_000)
        story.reply(20_000 * number)
    return story


@pair
def overcount(on: bool) -> Story:
    """Three requests counted at more than 1.25 times, or at that."""
    story = Story().opened().turn()
    for _ in range(3):
        story.reply(40_000, local=50_100 if on else 50_000)
    return story


@pair
def window_unknown(on: bool) -> Story:
    """A load and nobody who names a window, or an agent that does."""
    return Story().opened(model="unheard-of", window=None if on else 64_000).turn().reply(9_000)


# Degraded.


@pair
def conflict(on: bool) -> Story:
    """An event came again with other content, or something else is noted."""
    story = Story().opened()
    return story.say("note", level="warning", text="event 3", code="conflict" if on else "other")


@pair
def gap(on: bool) -> Story:
    """The agent dropped events, or says a word about its outbox."""
    story = Story().opened().turn()
    if on:
        return story.say("gap", count=3, reason="outbox full")
    return story.say("note", level="warning", text="the outbox is nearly full")


@pair
def rejected_events(on: bool) -> Story:
    """An event was refused, or the agent notes an error of its own."""
    return (
        Story()
        .opened()
        .say("note", level="error", text="schema at $.tokens", code="rejected" if on else None)
    )


@pair
def unreadable(on: bool) -> Story:
    """A line that cannot be read, or one that is merely of no interest."""
    return (
        Story(read_only=True)
        .opened()
        .say("note", level="warning", text="line 7", code="unreadable" if on else "skipped")
    )


@pair
def clock_skew(on: bool) -> Story:
    """A millisecond more than half a minute ahead, or exactly that."""
    return Story(live=False).connected(skew_ms=30_001 if on else 30_000).opened()


@pair
def agent_late(on: bool) -> Story:
    """It leaves while a user waits, or when nobody does."""
    story = Story().opened().turn()
    return story.disconnected() if on else story.reply(9_000).ends().disconnected()


@pair
def agent_offline(on: bool) -> Story:
    """It does not come back in time, or a moment before that."""
    story = Story().opened().turn().disconnected()
    return story.tick_when_due() if on else story.connected()


# Watch.


@pair
def retries_grow_prompt(on: bool) -> Story:
    """Two retries, each larger, or each the same."""
    story = Story().opened().turn()
    for number in range(3):
        request = story.ask(local=20_000 + (500 * number if on else 0))
        story.say("model.failed", request=request, error="invalid")
    return story


@pair
def jump(on: bool) -> Story:
    """A token more than a quarter of the window, or exactly that."""
    story = Story().opened().turn().reply(10_000).message(50_000)
    return story.reply(60_001 if on else 60_000)


@pair
def near_trigger(on: bool) -> Story:
    """Nine tenths of the trigger, or a token less."""
    return Story().opened(trigger={"tokens": 150_000}).turn().reply(135_000 if on else 134_999)


@pair
def huge_item(on: bool) -> Story:
    """A token more than a fifth of the budget, or exactly that."""
    return Story().opened(reserve=10_000).turn().message(38_001 if on else 38_000)


@pair
def ineffective(on: bool) -> Story:
    """A compaction that frees a token less than a twentieth, or that."""
    return Story().opened().turn().compacts(100_000, 95_001 if on else 95_000)


@pair
def lossy(on: bool) -> Story:
    """Cut by rule, or summarised."""
    step = "fallback" if on else "summary"
    steps = [{"step": step, "before": 100_000, "after": 40_000, "calls": 0 if on else 1}]
    return Story().opened().turn().compacts(100_000, 40_000, steps=steps, lossy=on or None)


@pair
def load_pending(on: bool) -> Story:
    """Nothing was counted since the compaction, or the next request was."""
    story = Story().opened().turn().reply(150_000).compacts(150_000, 40_000)
    return story if on else story.reply(40_000)


@pair
def refused(on: bool) -> Story:
    """The guard refuses, or only notes what it counts."""
    story = Story().opened().turn()
    if on:
        return story.say("guard.refused", count=190_001, limit=190_000, code="CONTEXT_UNFIT")
    return story.reply(9_000, local=9_000)
