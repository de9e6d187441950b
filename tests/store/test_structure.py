"""The structure is the newest whole snapshot, in however many parts it came."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.store import queries
from ctxhealth.store.models import Chat
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import event, message, opened

pytestmark = pytest.mark.db


def topic(name: str, tokens: int) -> dict[str, object]:
    return {"id": name, "tokens": tokens, "messages": 3, "title": name}


def test_a_snapshot_in_parts_is_put_together(sender: Sender) -> None:
    first: dict[str, Any] = {
        "revision": "r1",
        "topics": [topic("old", 5)],
        "current": {"tokens": 1},
    }
    parts: list[dict[str, Any]] = [
        {"revision": "r2", "part": 1, "parts": 2, "system": 40, "topics": [topic("one", 10)]},
        {"revision": "r2", "part": 2, "parts": 2, "topics": [topic("two", 20)],
         "current": {"tokens": 30, "messages": 2}},
    ]  # fmt: skip
    snapshots = [event(2 + n, "history.snapshot", **part) for n, part in enumerate([first, *parts])]
    sender.send(connect_agent(), [opened(1), *snapshots, message(5)])
    detail = queries.chat_detail(Chat.objects.get().pk)
    assert detail is not None and detail.structure.source == "snapshot"
    assert {block.id for block in detail.structure.blocks if block.kind == "topic"} == {
        "one", "two",
    }  # fmt: skip
    past = queries.chat_detail(Chat.objects.get().pk, at=3)
    assert past is not None and past.structure.revision == "r1"


def test_the_mirror_holds_what_is_in_the_context(sender: Sender) -> None:
    snapshot = event(
        2, "history.snapshot", revision="r1", system=100, tools=50,
        bulks=[{"id": "b1", "tokens": 70, "records": 2}],
        topics=[topic("t1", 30)], current={"tokens": 20},
        order=[
            {"id": "i1", "role": "user", "kind": "text", "tokens": 30, "in": "t1"},
            {"id": "i2", "role": "user", "kind": "text", "tokens": 20, "in": "current"},
        ],
    )  # fmt: skip
    sender.send(connect_agent(), [opened(1), snapshot])
    mirror = queries.chat_history_mirror(Chat.objects.get().pk)
    assert mirror is not None
    assert mirror.totals() == {
        "system": 100, "tools": 50, "extras": 0, "bulks": 70, "topics": 30, "current": 20,
    }  # fmt: skip
    assert mirror.last_user_message is not None and mirror.last_user_message.id == "i2"
