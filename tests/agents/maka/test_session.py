"""A session of the host into events, without any socket: looked at often, once, and restored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ctxhealth.agents.maka.host import READ_ONLY, TESTED, Epoch
from ctxhealth.agents.maka.known import Known
from ctxhealth.agents.maka.session import Pulled, look
from tests.agents.maka import scenes
from tests.agents.maka.host import FakeHost
from tests.agents.maka.rig import decision
from tests.agents.maka.script import Session
from tests.core.story import Story, wire_event

Frame = dict[str, Any]
Scene = Callable[[Session], None]
NOW = 1_796_000_000_000
OLD, NEW = TESTED[39], READ_ONLY[162]
SCENES = (scenes.healthy, scenes.latched, scenes.overflowed, scenes.exhausted, scenes.silent)


def pulled(session: Session, known: Known) -> Pulled:
    """All that is new of it, as the bridge pulls it."""
    after = -1 if known.cursor is None else known.cursor
    traces = {
        turn: json.loads(json.dumps(trace))
        for turn, trace in session.traces.items()
        if turn not in known.ended
    }
    checkpoints = {
        turn: list(session.checkpoints.get(str(trace["runId"]), []))
        for turn, trace in traces.items()
    }
    messages = [(at, message) for at, message in session.messages if at > after]
    return Pulled(
        session.now, session.item(), messages, traces, checkpoints,
        diagnostics=session.diagnostics, root=session.root,
    )  # fmt: skip


class Told(FakeHost):
    """A host that nobody connects to: each frame that it would push is a look at once."""

    def __init__(self, epoch: Epoch, often: bool = True) -> None:
        super().__init__(epoch.number)
        self.epoch, self.often = epoch, often
        self.known: dict[str, Known] = {}
        self.events: list[Frame] = []

    def push(self, session: str, kind: str, **fields: Any) -> None:
        if self.often and session in self.sessions:
            self.look(session)

    def look(self, session: str) -> None:
        """As after a restart of the bridge: from what was kept as JSON."""
        known = self.known.get(session) or Known(session)
        known = Known.restored(json.loads(json.dumps(known.saved())))
        self.events += look(known, self.epoch, pulled(self.sessions[session], known))
        self.known[session] = known


def told(scene: Scene, epoch: Epoch = OLD, often: bool = True) -> list[Frame]:
    host = Told(epoch, often)
    session = host.session("s", now=NOW)
    scene(session)
    host.look(session.id)
    return host.events


def story(events: list[Frame]) -> Story:
    found = Story()
    for event in events:
        fields = {key: value for key, value in event.items() if key != "chat"}
        found.put(wire_event(**fields, seq=found.seq + 1), at=event["ts"] - NOW + 10_000)
    return found


def names(events: list[Frame]) -> list[tuple[Any, ...]]:
    """What each event is of; how often the structure was looked at does not matter."""
    return sorted(
        (e["type"], e.get("turn"), e.get("attempt"), e.get("id"), e.get("latch"), e.get("outcome"))
        for e in events
        if e["type"] not in ("history.snapshot", "chat.updated", "request.sent", "model.replied")
    )


@pytest.mark.parametrize("epoch", [OLD, NEW], ids=lambda epoch: f"epoch-{epoch.number}")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
class TestEveryScene:
    def test_is_made_of_events_that_the_protocol_knows(self, scene: Scene, epoch: Epoch) -> None:
        found = story(told(scene, epoch))
        assert found.state.turns.open is False

    def test_tells_the_same_looked_at_often_or_once(self, scene: Scene, epoch: Epoch) -> None:
        def plain(events: list[Frame]) -> list[tuple[Any, ...]]:
            # Names of the fake host's attempts are counted on from scene to scene.
            seen: dict[str, str] = {}
            return [
                tuple(seen.setdefault(v, str(len(seen))) if v else v for v in row)
                for row in names(events)
            ]

        assert plain(told(scene, epoch)) == plain(told(scene, epoch, often=False))

    def test_ends_every_request_and_every_compaction(self, scene: Scene, epoch: Epoch) -> None:
        events = told(scene, epoch)
        of = lambda *kinds: [e for e in events if e["type"] in kinds]  # noqa: E731
        sent = [e["request"] for e in of("request.sent")]
        ended = [e["request"] for e in of("model.replied", "model.failed")]
        assert sorted(sent) == sorted(ended) and len(set(sent)) == len(sent)
        begun = [e["attempt"] for e in of("compaction.started")]
        assert begun == [e["attempt"] for e in of("compaction.finished")]


def test_a_reply_carries_what_stood_in_it() -> None:
    replies = [e for e in told(scenes.healthy) if e["type"] == "model.replied"]
    contents = [e.get("content") for e in replies if e.get("purpose") != "utility"]
    text, calls = {"text_chars": 9, "tool_calls": 0}, {"text_chars": 0, "tool_calls": 1}
    assert contents == [text, calls, calls, text]


def test_the_usage_keeps_cached_tokens_inside_the_input() -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    turn = session.begin("t1")
    session.request(turn, 9_136, cacheReadInputTokens=4_568)
    session.say(turn)
    session.end(turn)
    (reply,) = [e for e in host.events if e["type"] == "model.replied"]
    assert reply["usage"]["dialect"] == "openai"
    assert story(host.events).row.load.value == 9_136


@pytest.mark.parametrize(
    "attempt", [{"usageBasis": "missing"}, {"usageBasis": "partial", "inputTokens": 12}]
)
def test_usage_that_is_missing_or_partial_is_no_usage(attempt: Frame) -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    turn = session.begin("t1")
    session.request(turn, None if attempt["usageBasis"] == "missing" else 12, **attempt)
    session.say(turn)
    session.end(turn)
    (reply,) = [e for e in host.events if e["type"] == "model.replied"]
    assert reply.get("usage") is None
    assert story(host.events).row.load.value is None


def test_a_checkpoint_that_is_used_again_is_no_new_compaction() -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    scenes.healthy(session)
    written = session.checkpoints["run-t2"][0]
    for number in range(3, 6):
        turn = session.begin(f"t{number}")
        session.request(turn, 8_000)
        session.say(turn)
        reused = decision("replaced", "priorReplay", boundaryIds=[written])
        session.end(turn, decisions=[reused], before=8_000, after=400)
    finished = [e for e in host.events if e["type"] == "compaction.finished"]
    assert len(finished) == 1


def test_a_turn_that_left_its_oldest_turns_out_fell_back() -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    turn = session.begin("t1")
    session.request(turn, 4_051)
    session.say(turn)
    failed = decision("failedOpen", "priorReplay", failOpenReason="input_too_large")
    session.end(turn, decisions=[failed], before=18_127, after=1_755, prior=1_147)
    (attempt,) = story(host.events).state.compactions.recent
    assert (attempt.outcome, attempt.before, attempt.after) == ("fell_back", 18_127, 1_147)
    assert attempt.lossy


def test_a_summary_that_was_thrown_away_is_explained_at_the_turn_s_end() -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    turn = session.begin("t1")
    session.request(turn, 13_000, finish="tool_calls")
    session.tool(turn)
    session.fold(turn, 12_000, 400, wrote=False)
    session.request(turn, 13_400)
    session.say(turn)
    failed = decision("failedOpen", failOpenReason="malformed_summary_missing_section")
    session.end(turn, decisions=[failed], before=3_000, after=3_000)
    (finished,) = [e for e in host.events if e["type"] == "compaction.finished"]
    assert finished["summarizer"]["error"] == "other"
    notes = [e["text"] for e in host.events if e["type"] == "note" and e["code"] == "fold_reason"]
    assert len(notes) == 1 and "malformed_summary_missing_section" in notes[0]


def test_nothing_to_fold_in_a_turn_that_ended_well_was_a_latch_until_there() -> None:
    def scene(session: Session) -> None:
        turn = session.begin("t1")
        session.request(turn, 13_000)
        session.say(turn)
        nothing = decision("failedOpen", failOpenReason="no_safe_completed_span")
        session.end(turn, decisions=[nothing], before=3_000, after=3_000)

    kinds = [e["type"] for e in told(scene, NEW) if e["type"].startswith("latch")]
    assert kinds == ["latch.set", "latch.cleared"]
    assert not [e for e in told(scene, OLD) if e["type"].startswith("latch")]


def test_a_history_of_which_nothing_can_be_folded_is_told_as_that() -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    turn = session.begin("t1")
    session.request(turn, 13_000)
    session.say(turn)
    nothing = decision("unchanged", "priorReplay", reason="insufficient_turns")
    session.end(turn, decisions=[nothing], before=12_500, after=12_500, prior=12_500)
    (attempt,) = story(host.events).state.compactions.recent
    assert (attempt.outcome, attempt.reason) == ("nothing_foldable", "insufficient_turns")


def test_a_history_that_is_small_enough_is_no_attempt() -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    turn = session.begin("t1")
    session.request(turn, 5_000)
    session.say(turn)
    session.end(turn, decisions=[scenes.BELOW], before=3_000, after=3_000)
    assert not [e for e in host.events if e["type"].startswith("compaction")]


def test_a_turn_that_maka_never_ended_ends_with_the_next() -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    session.request(session.begin("t1"), 5_000, finish="tool_calls")
    turn = session.begin("t2")
    session.request(turn, 5_500)
    session.say(turn)
    session.end(turn)
    ended = [(e["turn"], e["outcome"]) for e in host.events if e["type"] == "turn.ended"]
    assert ended == [("t1", "cancelled"), ("t2", "answered")]
    replies = [e for e in host.events if e["type"] == "model.replied"]
    assert len(replies) == 2 and "content" not in replies[0]


def test_an_overflow_without_a_rescue_is_a_latch_where_the_version_has_one() -> None:
    row = story(told(scenes.latched, NEW)).row
    assert [(latch.kind, latch.justified) for latch in row.latches] == [("structural", False)]
    assert {f.code: f.severity for f in row.findings}["latched_unjustified"] == "critical"
    events = told(scenes.latched, OLD)
    assert not [event for event in events if event["type"].startswith("latch")]
    skipped = [e["reported"] for e in events if e["type"] == "compaction.finished"]
    assert skipped == ["failedOpen"]


def test_a_failed_summary_before_it_justifies_the_latch() -> None:
    def scene(session: Session) -> None:
        turn = session.begin("t1")
        session.request(turn, 14_000, finish="tool_calls")
        session.tool(turn)
        session.fold(turn, 13_000, 1, wrote=False)
        session.overflow(turn)
        session.end(turn, "failed", error="context_overflow")

    row = story(told(scene, NEW)).row
    assert [(latch.kind, latch.justified) for latch in row.latches] == [("summarizer", True)]


def test_a_structural_decision_among_others_is_the_one_without_a_call() -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    turn = session.begin("t1")
    session.request(turn, 13_000, finish="tool_calls")
    session.tool(turn)
    name = session.fold(turn, 12_000, 300)
    session.request(turn, 6_000)
    session.say(turn)
    decisions = [
        decision("failedOpen", failOpenReason="no_safe_completed_span"),
        decision("replaced", boundaryIds=[name]),
    ]
    session.end(turn, decisions=decisions, before=3_000, after=3_000)
    found = [(a.outcome, a.summarizer and a.summarizer.calls) for a in story(
        host.events).state.compactions.recent]  # fmt: skip
    assert found == [("reduced", 1), ("nothing_foldable", 0)]
    assert not [e for e in host.events if e["type"] == "note" and e["code"] == "fold_reason"]


def test_a_compaction_by_hand_fails_for_the_reason_that_maka_gives() -> None:
    host = Told(OLD)
    session = host.session("s", now=NOW)
    session.begin_bare("by-hand")
    session.fold("by-hand", 3_000, 400, wrote=False)
    failed = decision("failedOpen", "priorReplay", failOpenReason="malformed_summary_truncated")
    session.end("by-hand", decisions=[failed], before=7_000, after=3_000)
    (attempt,) = story(host.events).state.compactions.recent
    assert (attempt.trigger, attempt.outcome) == ("manual", "summarizer_failed")
    assert (attempt.error_class, attempt.before, attempt.after) == ("truncated", 7_000, 7_000)


def test_an_unreadable_message_costs_nothing_else() -> None:
    host = Told(OLD, often=False)
    session = host.session("s", now=NOW)
    scenes.silent(session)
    known = Known("s")
    found = pulled(session, known)
    found.messages.insert(1, (0, {}))
    kinds = [event["type"] for event in look(known, OLD, found)]
    assert kinds.count("turn.ended") == 1


def test_what_another_version_kept_is_refused() -> None:
    with pytest.raises(ValueError, match="version 0"):
        Known.restored({"version": 0, "id": "s"})
