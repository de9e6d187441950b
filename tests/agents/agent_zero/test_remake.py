"""The engine's plan on Agent Zero's own objects: nothing lost or doubled, sizes as planned."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.agents.agent_zero.stand_in import StandIn, ids_of, reply


class Maker:
    """Histories of every shape: nested and blank bulks, tool loops, summaries, large messages."""

    def __init__(self, host: StandIn, seed: int) -> None:
        self.module, self.chance = host.history, random.Random(seed)
        self.history = self.module.History(SimpleNamespace())

    def made(self) -> Any:
        self.history.bulks = [self.bulk(2) for _ in range(self.chance.randrange(5))]
        self.history.topics = [self.topic() for _ in range(self.chance.randrange(14))]
        self.history.current = self.topic()
        self.history.counter = len(ids_of(self.history))
        return self.history

    def bulk(self, depth: int) -> Any:
        bulk = self.module.Bulk(self.history)
        kinds = [self.topic] + ([lambda: self.bulk(depth - 1)] if depth else [])
        bulk.records = [self.chance.choice(kinds)() for _ in range(self.chance.randint(1, 3))]
        bulk.summary = "" if self.chance.random() < 0.4 else self.words(40)
        return bulk

    def topic(self) -> Any:
        topic = self.module.Topic(self.history)
        self.put(topic, False, {"user_message": self.words(30)})
        for _ in range(self.chance.randrange(4)):
            self.put(topic, True, reply(self.words(20), "search"))
            if self.chance.random() < 0.85:
                result = {"tool_name": "search", "tool_result": self.words(150)}
                self.put(topic, False, result)
        self.put(topic, True, reply(self.words(60)))
        if self.chance.random() < 0.2:
            topic.messages[0].set_summary(self.words(5))
        return topic

    def put(self, topic: Any, ai: bool, content: Any) -> None:
        topic.messages.append(self.module.Message(ai, content))

    def words(self, most: int) -> str:
        length = self.chance.randint(1, most) * (12 if self.chance.random() < 0.05 else 1)
        return " ".join(f"w{self.chance.randrange(999)}" for _ in range(length))


@pytest.fixture
def plugin(host: StandIn) -> StandIn:
    return host


def test_every_message_is_still_there_once_and_the_sizes_are_those_of_the_plan(
    plugin: StandIn,
) -> None:
    mirror, remake = plugin.module("mirror"), plugin.module("remake")
    outcomes = set()
    for seed in range(120):
        history = Maker(plugin, seed).made()
        ids, before = sorted(ids_of(history)), history.get_tokens()
        made = mirror.mirror(history)
        assert made.history.total() == before
        share = (0.05, 0.3, 0.7)[seed % 3]
        plan = remake_plan(plugin, made.history, int(before * share))
        outcomes.add(plan.outcome)
        remake.apply(history, made, plan)
        assert set(ids_of(history)) >= set(ids), seed
        assert len(ids_of(history)) == len(set(ids_of(history))), seed
        # The plan counts a speaker for each text, the agent none for a bulk.
        spared = 4 * (len(plan.result.bulks) + len(plan.cut))
        assert plan.after - spared <= history.get_tokens() <= plan.after, seed
        again = mirror.mirror(history).history
        assert sent(again) == sent(plan.result), seed
    assert {"fell_back", "floor_exceeds_target"} <= outcomes


def sent(history: Any) -> list[str | None]:
    """Every text that the model is sent, in its order."""
    bulks = [b for bulk in history.bulks for b in (bulk.sent() if bulk.is_blank else [bulk])]
    turns = [item for topic in (*history.topics, history.current) for item in topic.items]
    return [part.text for part in (*bulks, *turns)]


def remake_plan(plugin: StandIn, history: Any, target: int) -> Any:
    fallback = plugin.module("fallback")
    return fallback.plan_fallback(history, target=target, count=plugin.module("host").count_message)


def test_a_change_that_would_lose_a_message_is_undone(
    plugin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror, remake = plugin.module("mirror"), plugin.module("remake")
    history = Maker(plugin, 7).made()
    whole = history.to_dict()
    made = mirror.mirror(history)
    plan = remake_plan(plugin, made.history, history.get_tokens() // 4)
    monkeypatch.setattr(remake._Work, "_inside", lambda work: {})
    with pytest.raises(remake.Lost):
        remake.apply(history, made, plan)
    assert history.to_dict() == whole


def test_names_hold_as_long_as_the_thing_does(plugin: StandIn) -> None:
    mirror = plugin.module("mirror")
    history = Maker(plugin, 3).made()
    before = mirror.mirror(history).history
    history.new_topic()
    history.add_message(False, {"user_message": "more"})
    after = mirror.mirror(history).history
    assert [b.id for b in after.bulks] == [b.id for b in before.bulks]
    assert [t.id for t in after.topics[:-1]] == [t.id for t in before.topics]


def test_a_long_history_is_changed_in_well_under_the_time_of_a_frame(plugin: StandIn) -> None:
    import time

    mirror, remake = plugin.module("mirror"), plugin.module("remake")
    maker = Maker(plugin, 1)
    maker.history.topics = [maker.topic() for _ in range(1_500)]
    maker.history.counter = 1
    history = maker.history
    made = mirror.mirror(history)
    plan = remake_plan(plugin, made.history, history.get_tokens() // 3)
    spent = []
    began = time.thread_time()
    remake.apply(history, made, plan)
    spent.append(time.thread_time() - began)
    assert min(spent) < 0.25, spent
