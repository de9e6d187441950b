"""A checkpoint is a shortcut: one that cannot be read is passed over and the log is folded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxhealth.core.state import encode_state
from ctxhealth.store import queries, writes
from ctxhealth.store.chat_rows import CHECKPOINT_EVERY
from ctxhealth.store.models import Chat, Checkpoint
from ctxhealth.store.through import call
from ctxhealth.store.verify import rebuild, verify
from ctxhealth.store.writer import Writer
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import message, session

pytestmark = pytest.mark.db


def _cut(state: bytes) -> bytes:
    return state[: len(state) // 2]


def _other_shape(state: bytes) -> bytes:
    return b"\x00\x00\x00\x00" + state[4:]


def _nothing(state: bytes) -> bytes:
    return b""


def _another_thing(state: bytes) -> bytes:
    return state[:4] + b"\x93\x01\x02\x03"


def _folded(chat: Chat, at: int | None = None) -> bytes:
    state = queries.chat_state(chat.pk, at=at)
    assert state is not None
    return encode_state(state)


@pytest.mark.parametrize("spoil", [_cut, _other_shape, _nothing, _another_thing])
def test_the_log_is_folded_where_a_checkpoint_cannot_be_read(
    sender: Sender, writer: Writer, spoil: Callable[[bytes], bytes]
) -> None:
    at, events = connect_agent(), session(1, 150)
    for start in range(0, len(events), 100):
        sender.send(at, events[start : start + 100])
    writer.stop()
    chat = Chat.objects.get()
    before = _folded(chat)
    for row in Checkpoint.objects.all():
        row.state = spoil(bytes(row.state))
        row.save()
    restarted = Writer()
    restarted.start()
    try:
        assert _folded(chat, chat.chat_seq) == before
        Chat.objects.update(deadline=1)
        assert writes.chats_tick(now=2_000_000_000_000) == 1
        assert Sender(restarted).send(at, [message(len(events) + 1)]).stored == 1
    finally:
        restarted.stop()
    assert all("checkpoint" in problem.what for problem in verify(repair=True).problems)
    assert verify().problems == []


def test_a_rebuilt_chat_has_states_along_its_log(sender: Sender, writer: Writer) -> None:
    at, events = connect_agent(), session(1, 450)
    for start in range(0, len(events), 100):
        sender.send(at, events[start : start + 100])
    chat = Chat.objects.get()
    states = [_folded(chat, seq) for seq in (300, chat.chat_seq // 2, chat.chat_seq)]
    call(rebuild, chat.pk)
    kept = list(Checkpoint.objects.order_by("chat_seq").values_list("chat_seq", flat=True))
    gaps = [after - before for before, after in zip([0, *kept], kept, strict=False)]
    assert max(gaps) <= 2 * CHECKPOINT_EVERY
    assert [_folded(chat, seq) for seq in (300, chat.chat_seq // 2, chat.chat_seq)] == states
    assert verify().problems == []
