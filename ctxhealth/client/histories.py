"""An engine ``History`` as the fields of a ``history.snapshot`` event."""

# ruff: noqa: TID252  (relative, so that client and engine can be vendored side by side)
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..engine import Bulk, History, Item, Topic


def snapshot_of(history: History) -> dict[str, Any]:
    """Sizes in tokens, and the order of every item that is sent. Texts are left out."""
    order = [
        _item(bulk.id, item) for bulk in history.bulks if bulk.is_blank for item in bulk.sent()
    ]
    for topic in history.topics:
        order.extend(_item(topic.id, item) for item in topic.items)
    order.extend(_item("current", item) for item in history.current.items)
    return {
        "system": history.system,
        "tools": history.tools,
        "extras": history.extras,
        "history": history.total("history"),
        "bulks": [_bulk(bulk) for bulk in history.bulks],
        "topics": [_topic(topic) for topic in history.topics],
        "current": {"tokens": history.current.tokens, "messages": len(history.current.items)},
        "order": order,
    }


def _bulk(bulk: Bulk) -> dict[str, Any]:
    return {"id": bulk.id, "tokens": bulk.tokens, "records": bulk.records}


def _topic(topic: Topic) -> dict[str, Any]:
    fields = {
        "id": topic.id,
        "tokens": topic.tokens,
        "messages": len(topic.items),
        "title": topic.title,
        "largest": max((item.tokens for item in topic.items), default=None),
    }
    return {key: value for key, value in fields.items() if value is not None}


def _item(where: str, item: Item) -> dict[str, Any]:
    fields = {
        "id": item.id,
        "role": item.role,
        "kind": item.kind,
        "tokens": item.tokens,
        "in": where,
        "calls": list(item.calls) or None,
        "answers": list(item.answers) or None,
        "name": item.name,
        "read": None if item.read else False,
    }
    return {key: value for key, value in fields.items() if value is not None}
