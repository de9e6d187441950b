"""Puts a plan of the engine onto Agent Zero's own history.

Nothing is thrown away: what leaves the prompt lies inside the bulk that stands for it, as the
agent's own compression leaves it, and a shortened message keeps its content behind its summary.
One synchronous call on the loop of the agent's turns; it takes well under 50 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ctxhealth.engine import Bulk, Plan, Topic
from ctxhealth.engine.bulks import EVICTED

from .mirror import Mirror, message_ids


class Lost(Exception):
    """Messages would have been lost; the history was put back as it was."""


@dataclass
class _Before:
    """Enough to undo: the lists as they were, and the messages that were changed."""

    bulks: list[Any]
    topics: list[Any]
    current: list[Any]
    ids: list[str]
    messages: list[tuple[Any, str, int]] = field(default_factory=list)


def apply(source: Any, mirror: Mirror, plan: Plan) -> None:
    """Change ``source`` as planned over its ``mirror``. Raises Lost, with nothing changed."""
    before = _Before(
        list(source.bulks), list(source.topics), list(source.current.messages), message_ids(source)
    )
    try:
        _Work(source, mirror, plan, before).run()
        missing = set(before.ids) - set(message_ids(source))
        if missing:
            raise Lost(f"{len(missing)} messages would have been lost")
    except BaseException:
        _undo(source, before)
        raise


def _undo(source: Any, before: _Before) -> None:
    source.bulks, source.topics = before.bulks, before.topics
    source.current.messages = before.current
    for message, summary, tokens in before.messages:
        message.summary, message.tokens = summary, tokens


class _Work:
    def __init__(self, source: Any, mirror: Mirror, plan: Plan, before: _Before) -> None:
        self.source, self.mirror, self.plan = source, mirror, plan
        self.before = before
        module = sys.modules[type(source).__module__]
        self.new_bulk: Callable[[], Any] = lambda: module.Bulk(history=source)
        self.new_topic: Callable[[], Any] = lambda: module.Topic(history=source)
        self.new_message: Callable[..., Any] = module.Message
        self.texts = {item.id: item.text for item in mirror.history.sent_items()}
        old = mirror.history
        self.old_topics = {topic.id: topic for topic in (*old.topics, old.current)}
        self.old_bulks = {bulk.id: bulk for bulk in old.bulks}
        result = plan.result
        self.kept = {item.id for topic in (*result.topics, result.current) for item in topic.items}

    def run(self) -> None:
        opened = [topic for topic in self.plan.result.topics if topic.id in self.mirror.bulks]
        past = [topic for topic in self.plan.result.topics if topic.id not in self.mirror.bulks]
        bulks = [*self._bulks(), *map(self._opened, opened)]
        topics = [self._topic(topic) for topic in past]
        current = self._messages(self.plan.result.current)
        self.source.bulks, self.source.topics = bulks, topics
        self.source.current.messages = current

    # -- topics and messages

    def _topic(self, topic: Topic) -> Any:
        old = self.old_topics.get(topic.id)
        if old is not None and old is topic:
            return self.mirror.topics[topic.id]
        made = self.new_topic()
        made.messages = self._messages(topic)
        return made

    def _opened(self, topic: Topic) -> Any:
        """What is left of a blank bulk: blank still, so it sends what lies inside, as it is.

        The engine calls it a topic; but a topic here holds messages only, no nested bulk.
        """
        made = self.new_bulk()
        for item in topic.items:
            nested = self.mirror.bulks.get(item.id)
            if nested is not None:
                same = item.text == self.texts.get(item.id)
                made.records.append(nested if same else self._shortened(nested, item.text or ""))
                continue
            if not made.records or hasattr(made.records[-1], "records"):
                made.records.append(self.new_topic())
            made.records[-1].messages.append(self._message(item.id, item.text))
        return made

    def _shortened(self, bulk: Any, text: str) -> Any:
        made = self.new_bulk()
        made.records, made.summary = [bulk], text
        return made

    def _messages(self, topic: Topic) -> list[Any]:
        return [self._message(item.id, item.text) for item in topic.items]

    def _message(self, name: str, text: str | None) -> Any:
        message = self.mirror.messages[name]
        if hasattr(message, "messages"):
            # The summary of a whole topic, sent as a message of its own from now on.
            return self.new_message(ai=False, content=text or str(message.summary))
        if text is not None and text != self.texts.get(name):
            self.before.messages.append((message, message.summary, message.tokens))
            message.set_summary(text)
        return message

    # -- bulks

    def _bulks(self) -> list[Any]:
        """Every bulk of the result, with all that it stands for inside."""
        inside = self._inside()
        found = []
        for bulk in self.plan.result.bulks:
            records = inside.get(bulk.id, [])
            own = self.mirror.bulks.get(bulk.id)
            unchanged = self.old_bulks.get(bulk.id) == bulk
            found.append(own if unchanged and own is not None else self._bulk(bulk, records))
        return found

    def _bulk(self, bulk: Bulk, records: list[Any]) -> Any:
        made = self.new_bulk()
        made.records.extend(records)
        made.summary = bulk.text or ""
        return made

    def _inside(self) -> dict[str, list[Any]]:
        """Id of each bulk that is left -> the records that it took in, oldest first."""
        made = self._folded()
        evicted = self._evicted()
        left = {bulk.id for bulk in self.plan.result.bulks} | evicted
        inside: dict[str, list[Any]] = {}
        owner = ""
        for name in self._order(made):
            owner = name if name in left or not owner else owner
            target = EVICTED if owner in evicted else owner
            inside.setdefault(target, []).extend(made.get(name) or self._own(name))
        if EVICTED in {bulk.id for bulk in self.plan.result.bulks}:
            inside.setdefault(EVICTED, []).extend(self._leftover())
        return inside

    def _own(self, name: str) -> list[Any]:
        own = self.mirror.bulks.get(name)
        return [] if own is None else [own]

    def _order(self, made: dict[str, list[Any]]) -> list[str]:
        """Ids of the bulks as they stood before any was merged, oldest first."""
        names = []
        slots = self._slots(made)
        for bulk in self.mirror.history.bulks:
            if bulk.id in slots:
                names.append(slots[bulk.id])
            elif not bulk.is_blank or not self._is_gone(bulk):
                names.append(bulk.id)
        placed = set(slots.values())
        return [*names, *(name for name in made if name not in placed)]

    def _slots(self, made: dict[str, list[Any]]) -> dict[str, str]:
        """A blank bulk -> the made one that took its place."""
        heads = {name.removeprefix("fallback:").partition("~")[0]: name for name in made}
        blank = (bulk.id for bulk in self.mirror.history.bulks if bulk.is_blank)
        return {bulk: heads[bulk] for bulk in blank if bulk in heads}

    def _is_gone(self, bulk: Bulk) -> bool:
        """Whether a blank bulk was folded into another's extract, or opened as a topic."""
        return bulk.id not in {left.id for left in self.plan.result.bulks}

    def _evicted(self) -> set[str]:
        return {name for step in self._steps(5) for name in step.touched}

    def _steps(self, level: int) -> list[Any]:
        return [step for step in self.plan.steps if step.level == level]

    def _folded(self) -> dict[str, list[Any]]:
        """Each bulk that was made of topics -> what left them."""
        made: dict[str, list[Any]] = {}
        for step in self._steps(3):
            names = list(step.made)
            owner = ""
            for unit in step.touched:
                if names and names[0].removeprefix("fallback:").partition("~")[0] == unit:
                    owner = names.pop(0)
                made.setdefault(owner, []).extend(self._left(unit))
        return made

    def _left(self, unit: str) -> list[Any]:
        """What left a topic or a blank bulk: the whole, or a topic of the messages that went."""
        old = self.old_topics.get(unit)
        items = list(old.items) if old else list(self.old_bulks[unit].sent())
        gone = [item.id for item in items if item.id not in self.kept]
        if len(gone) == len(items):
            return [self.mirror.topics[unit] if old else self.mirror.bulks[unit]]
        return self._topic_of(gone)

    def _topic_of(self, names: Iterable[str]) -> list[Any]:
        part = self.new_topic()
        part.messages = [
            self.mirror.messages[name]
            for name in names
            if name in self.mirror.messages and not hasattr(self.mirror.messages[name], "messages")
        ]
        bulks = [self.mirror.bulks[name] for name in names if name in self.mirror.bulks]
        return [*bulks, part] if part.messages else bulks

    def _leftover(self) -> list[Any]:
        """Messages that no extract could shrink and that were evicted as they were."""
        bulks = {*self._order(self._folded()), *(bulk.id for bulk in self.mirror.history.bulks)}
        names = [name for step in self._steps(5) for name in step.touched if name not in bulks]
        return self._topic_of(names)
