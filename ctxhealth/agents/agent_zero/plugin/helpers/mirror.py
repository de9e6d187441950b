"""Agent Zero's history as the engine's, and the way back from each item to its object.

Topics and bulks have no ids there: a topic is named after its first message, a bulk after its
first message and its depth. Names hold as long as the thing itself does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ctxhealth.engine import Bulk, History, Item, Topic
from ctxhealth.engine.bulks import EVICTED

from .contents import content_of

_EVICTED = re.compile(r"^\[([\d,]+) earlier parts of this chat were removed by fallback")


@dataclass
class Mirror:
    """``history`` and, by the ids in it, the agent's own objects. ``signature``: see there."""

    history: History = field(default_factory=History)
    messages: dict[str, Any] = field(default_factory=dict)
    topics: dict[str, Any] = field(default_factory=dict)
    bulks: dict[str, Any] = field(default_factory=dict)
    signature: tuple[Any, ...] = ()


def mirror(source: Any, *, system: int | None = None, tools: int | None = None,
           extras: int | None = None) -> Mirror:  # fmt: skip
    """Read a History of Agent Zero. Sizes are its own cached counts; sizes beside it are given."""
    made = Mirror(signature=signature(source))
    bulks = tuple(_bulk(made, bulk) for bulk in source.bulks)
    topics = tuple(_topic(made, topic) for topic in source.topics)
    current = _topic(made, source.current, "current")
    made.history = History(system, tools, extras, bulks, topics, _unread(current))
    return made


def signature(source: Any) -> tuple[Any, ...]:
    """Differs as soon as anything of the history's structure or sizes does; cheap to make."""
    return (
        source.counter,
        tuple((id(bulk), bulk.summary, len(bulk.records)) for bulk in source.bulks),
        tuple(_parts(topic) for topic in source.topics),
        _parts(source.current),
    )


def message_ids(source: Any) -> list[str]:
    """Ids of every message that the history holds, also behind summaries, oldest first."""
    found: list[str] = []
    stack: list[Any] = [source.current, *reversed(source.topics), *reversed(source.bulks)]
    while stack:
        part = stack.pop()
        inner = getattr(part, "records", None)
        inner = getattr(part, "messages", None) if inner is None else inner
        if inner is None:
            found.append(str(part.id))
        else:
            stack.extend(reversed(inner))
    return found


def topic_id(topic: Any) -> str:
    return f"t-{topic.messages[0].id}" if topic.messages else "t-empty"


def bulk_id(bulk: Any) -> str:
    depth, part = 0, bulk
    while getattr(part, "records", None):
        depth, part = depth + 1, part.records[0]
    messages = getattr(part, "messages", None)
    first = messages[0].id if messages else "empty"
    return EVICTED if _EVICTED.match(bulk.summary or "") else f"b{depth}-{first}"


def _parts(topic: Any) -> tuple[Any, ...]:
    return id(topic), topic.summary, tuple((id(m), m.tokens) for m in topic.messages)


def _free(taken: dict[str, Any], wanted: str) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}~{number}", number + 1
    return name


def _bulk(made: Mirror, source: Any) -> Bulk:
    name = _free(made.bulks, bulk_id(source))
    made.bulks[name] = source
    told = _EVICTED.match(source.summary or "")
    records = int(told.group(1).replace(",", "")) if told else len(source.records)
    items: tuple[Item | Bulk, ...] = ()
    if not (source.summary or "").strip():
        items = tuple(part for record in source.records for part in _record(made, record))
    return Bulk(name, source.get_tokens(), source.summary or "", records, items)


def _record(made: Mirror, record: Any) -> tuple[Item | Bulk, ...]:
    if hasattr(record, "records"):
        return (_bulk(made, record),)
    return _topic(made, record).items


def _topic(made: Mirror, source: Any, name: str | None = None) -> Topic:
    name = _free(made.topics, name or topic_id(source))
    made.topics[name] = source
    if source.summary:
        # The cascade never sets it, an older chat's file may.
        return Topic(name, (_whole(made, name, source),))
    items: list[Item] = []
    open_call: str | None = None
    for message in source.messages:
        item, open_call = _item(made, message, open_call)
        items.append(item)
    return Topic(name, tuple(items), _title(source))


def _whole(made: Mirror, name: str, source: Any) -> Item:
    key = _free(made.messages, f"{name}:summary")
    made.messages[key] = source
    return Item(key, "system", "summary", source.get_tokens(), source.summary)


def _item(made: Mirror, message: Any, open_call: str | None) -> tuple[Item, str | None]:
    """The item, and the call that is open behind it."""
    content = content_of(message)
    name = _free(made.messages, str(message.id))
    made.messages[name] = message
    answers: tuple[str, ...] = ()
    if open_call is not None and content.role in ("tool", "system"):
        answers, open_call = (open_call,), None
    calls = (f"{name}:call",) if content.asks else ()
    item = Item(
        name, content.role, content.kind, message.get_tokens(), content.text, content.name,
        calls, answers,
    )  # fmt: skip
    return item, calls[0] if calls else (None if content.role == "assistant" else open_call)


def _unread(current: Topic) -> Topic:
    """Results behind the newest reply were not seen by the model yet."""
    items = list(current.items)
    for index in range(len(items) - 1, -1, -1):
        if items[index].role == "assistant":
            break
        if items[index].is_result:
            item = items[index]
            items[index] = Item(
                item.id, item.role, item.kind, item.tokens, item.text, item.name, item.calls,
                item.answers, read=False,
            )  # fmt: skip
    return Topic(current.id, tuple(items), current.title)


def _title(source: Any) -> str | None:
    said = content_of(source.messages[0]).user if source.messages else None
    return said[:60] if said else None
