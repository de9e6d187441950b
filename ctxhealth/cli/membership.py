"""Which items a stream leaves in each chat's context, as a history that the engine can plan over.

Texts do not travel in a stream as a whole, so sizes alone stand for the items.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ctxhealth.cli.errors import CannotSend
from ctxhealth.cli.replayed import Folded, Replay
from ctxhealth.core.changes import ItemChange
from ctxhealth.engine import Bulk, History, Item, Topic
from ctxhealth.wire.events import Event, HistorySnapshot


@dataclass(slots=True)
class Members:
    """One chat's items in order. ``parts`` are the events of its newest snapshot."""

    items: dict[str, ItemChange] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    parts: list[HistorySnapshot] = field(default_factory=list)

    def apply(self, change: ItemChange) -> None:
        if change.op == "clear":
            self.items.clear()
        elif change.op == "remove":
            self.items.pop(change.id, None)
        elif change.op == "move":
            if change.id in self.items:
                self.items[change.id].block = change.block
        else:
            self.items[change.id] = change
            if change.tokens is not None:
                self.sizes[change.id] = change.tokens

    def snapshot(self, event: HistorySnapshot) -> None:
        if (event.part or 1) == 1 or event.revision != self.parts[-1].revision:
            self.parts = []
        self.parts.append(event)


class Membership(Replay):
    """A replay that keeps the members; ``history`` tells one chat's."""

    def __init__(self) -> None:
        super().__init__()
        self._members: dict[str, Members] = {}

    def folded(self, chat: Folded, event: Event) -> None:
        members = self._members.setdefault(chat.state.chat, Members())
        for change in chat.changes.items:
            members.apply(change)
        if isinstance(event, HistorySnapshot):
            members.snapshot(event)

    def history(self, name: str) -> History:
        """The chat's context at the end. Raises CannotSend where the stream does not tell it."""
        told, members = self.chats[name].state.history, self._members[name]
        if not told.membership and (members.parts or told.compacted):
            raise CannotSend(
                f"Chat {name}: the stream does not say which messages are still in the context "
                "(a snapshot's order, or what a compaction removed)."
            )
        items = {id: _item(change, members.sizes) for id, change in members.items.items()}
        history = History(
            system=told.system, tools=told.tools, extras=told.extras or 0, bulks=_listed(members)
        )
        whole = _placed(history, members, items) if members.parts else _split(history, items)
        if not (whole.bulks or whole.topics or whole.current.items):
            raise CannotSend(f"Chat {name}: the stream tells of no message.")
        return whole


def _item(change: ItemChange, sizes: dict[str, int]) -> Item:
    tokens = sizes.get(change.id)
    if tokens is None:
        raise CannotSend(f"The size of item {change.id} is not known, so no plan can be made.")
    return Item(
        id=change.id,
        role=change.role or "user",
        kind=change.kind or "text",
        tokens=tokens,
        name=change.name,
        calls=tuple(change.calls or ()),
        answers=tuple(change.answers or ()),
        read=change.read is not False,
    )


def _listed(members: Members) -> tuple[Bulk, ...]:
    """The bulks of the newest snapshot."""
    found = []
    for bulk in (bulk for part in members.parts for bulk in part.bulks):
        if bulk.tokens is None:
            raise CannotSend(f"The size of bulk {bulk.id} is not known, so no plan can be made.")
        found.append(Bulk(bulk.id, bulk.tokens, records=bulk.records or 1))
    return tuple(found)


def _placed(history: History, members: Members, items: dict[str, Item]) -> History:
    """Items in the topics that the agent itself named."""
    titles = {topic.id: topic.title for part in members.parts for topic in part.topics}
    places: dict[str, list[Item]] = {id: [] for id in titles}
    bulks = {bulk.id for bulk in history.bulks}
    for id, item in items.items():
        block = members.items[id].block or "current"
        if block not in bulks:
            places.setdefault(block, []).append(item)
    current = Topic("current", tuple(places.pop("current", ())))
    topics = (Topic(id, tuple(found), titles.get(id)) for id, found in places.items() if found)
    return replace(history, topics=tuple(topics), current=current)


def _split(history: History, items: dict[str, Item]) -> History:
    """Where no agent drew the lines, a turn begins with each user message, and summaries are
    bulks."""
    bulks = [Bulk(item.id, item.tokens) for item in items.values() if item.kind == "summary"]
    *past, current = _turns(item for item in items.values() if item.kind != "summary")
    topics = tuple(Topic(f"t{number}", turn) for number, turn in enumerate(past, 1))
    return replace(history, bulks=tuple(bulks), topics=topics, current=Topic("current", current))


def _turns(items: Iterable[Item]) -> list[tuple[Item, ...]]:
    turns: list[list[Item]] = [[]]
    for item in items:
        if item.is_user_message and any(not before.is_user_message for before in turns[-1]):
            turns.append([])
        turns[-1].append(item)
    return [tuple(turn) for turn in turns]
