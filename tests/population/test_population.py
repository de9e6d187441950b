"""Days of healthy chats are quiet, and what they say rests on real days: all of it happens."""

from __future__ import annotations

from collections import Counter
from statistics import quantiles

import msgspec
import pytest

from ctxhealth.core.rules import default_rules
from ctxhealth.wire import decode_event, events
from ctxhealth.wire.decode import encode_event
from ctxhealth.wire.parts import Summarizer
from ctxhealth.wire.types import CompactionTrigger, Phase
from tests.population import distributions as drawn
from tests.population.body import Chat
from tests.population.day import Folded, fold_day
from tests.population.generator import DAY_END, Told, population

CHATS, SEED = 60, 20_261_130


@pytest.fixture(scope="module")
def day() -> list[Told]:
    return list(population(CHATS, SEED))


@pytest.fixture(scope="module")
def folded(day: list[Told]) -> Folded:
    return fold_all(day)


def fold_all(chats: list[Told]) -> Folded:
    into = Folded()
    for told in chats:
        fold_day(told, default_rules(), DAY_END, into)
    return into


def all_of(day: list[Told], kind: type[events.Envelope]) -> list[events.Envelope]:
    return [e.event for told in day for e in told.events if isinstance(e.event, kind)]


def test_a_healthy_day_opens_neither_a_critical_finding_nor_a_warning(folded: Folded) -> None:
    assert folded.fired == [], folded.report()


def test_nothing_that_healthy_agents_send_is_odd(folded: Folded) -> None:
    assert folded.oddities == []


def test_every_compaction_that_was_needed_brings_relief(folded: Folded) -> None:
    assert folded.outcomes["reduced"] > CHATS
    assert set(folded.outcomes) <= {"reduced", "not_needed"}


def test_all_that_a_day_brings_is_in_it(day: list[Told], folded: Folded) -> None:
    replies = all_of(day, events.ModelReplied)
    assert folded.chats == CHATS
    assert folded.sub_agents > 20
    assert len(all_of(day, events.ChatUpdated)) > 5
    assert len(all_of(day, events.ServerDisconnected)) > 5
    assert sum(msgspec.structs.asdict(r)["usage"] is None for r in replies) > 100
    words = Counter(_word(event) for told in day for _, event in told.events)
    for word in ("image", "cancelled", "rate_limit", "timeout", "manual", "idle", "mid_turn"):
        assert words[word] > 0, word


def _word(event: events.Event) -> str:
    """What tells one event from another of its type."""
    for name in ("phase", "error", "kind", "outcome"):
        value = getattr(event, name, None)
        if value in ("mid_turn", "rate_limit", "timeout", "image", "cancelled"):
            return str(value)
    return str(getattr(event, "trigger", ""))


def test_prompts_grow_as_in_the_real_sessions(day: list[Told]) -> None:
    steps = [step for told in day if told.runtime != "small window" for step in growth(told)]
    percent = quantiles(steps, n=100)
    for share in (0.2, 0.5, 0.8, 0.9):
        real = drawn.GROWTH.values[drawn.SHARES.index(share)]
        assert percent[round(share * 100) - 1] == pytest.approx(real, rel=0.3)


def growth(told: Told) -> list[int]:
    """From one request's prompt to the next one's, where no compaction stands between."""
    steps: list[int] = []
    last: int | None = None
    for _, event in told.events:
        if isinstance(event, events.CompactionStarted | events.ChatUpdated):
            last = None
        elif isinstance(event, events.ModelReplied) and event.usage and event.usage.output:
            usage = event.usage
            load = usage.input or 0
            if usage.dialect == "anthropic":
                load += (usage.cache_read or 0) + (usage.cache_write or 0)
            if last is not None:
                steps.append(load - last)
            last = load
    return steps


def test_the_same_seed_gives_the_same_day(day: list[Told]) -> None:
    first = ("chat-0", "chat-1", "chat-2")
    assert list(population(3, SEED)) == [t for t in day if t.chat.split(":")[0] in first]


def test_every_event_is_one_that_an_agent_could_send(day: list[Told]) -> None:
    server = (events.ServerConnected, events.ServerDisconnected)
    sent = [e.event for t in day[:20] for e in t.events if not isinstance(e.event, server)]
    assert len(sent) > 1_000
    for event in sent:
        assert decode_event(encode_event(event)).event == event


def test_days_with_a_dead_summarizer_are_not_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What watches the days can see: nothing is folded any more, and it says so."""
    monkeypatch.setattr(Chat, "compact", _compact_in_vain)
    folded = fold_all(list(population(CHATS // 3, SEED)))
    assert {"summarizer_failing", "stalled"} <= {fired.code for fired in folded.of("critical")}


def _compact_in_vain(chat: Chat, trigger: CompactionTrigger, phase: Phase) -> None:
    attempt, before = chat.teller.name("a"), chat.measured
    chat.teller.say(
        events.CompactionStarted, attempt=attempt, trigger=trigger, phase=phase,
        scope=chat.runtime.scope, before=before,
    )  # fmt: skip
    chat.teller.wait(2)
    chat.teller.say(
        events.CompactionFinished, attempt=attempt, trigger=trigger, reported="error",
        scope=chat.runtime.scope, before=before, after=before,
        summarizer=Summarizer(calls=1, input=chat.load, output=0, error="quota"),
    )  # fmt: skip
