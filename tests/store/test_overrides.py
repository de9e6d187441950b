"""Operators' words about windows: who they are for, which counts, and what they do to chats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctxhealth.store import judging, queries, writes
from ctxhealth.store.models import AuditEntry, WindowOverride
from ctxhealth.store.rejudging import rejudge
from ctxhealth.store.through import submit_inline
from ctxhealth.store.verify import verify
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import event, intakes, opened

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("transactional_db")]


@pytest.fixture(autouse=True)
def fresh_rules() -> Iterator[None]:
    judging.forget()
    yield
    judging.forget()


def chat(agent: str = "a1", **facts: Any) -> int:
    """A chat with one answered request of 150,000 tokens."""
    events = [
        opened(1, "c", **{"model": "gpt-x", "window": 200_000, "provider": "openai", **facts}),
        event(2, "request.sent", "c", request="r"),
        event(
            3,
            "model.replied",
            "c",
            request="r",
            usage={"dialect": "openai", "input": 150_000, "output": 9},
            content={"text_chars": 9},
        ),
    ]
    submit_inline(connect_agent(agent).stream, intakes(events))
    found = queries.chat_find(agent, "c")
    assert found is not None
    return found.id


def window(pk: int) -> tuple[int | None, str]:
    row = queries.chat_get(pk)
    assert row is not None
    return row.summary.window.value, row.summary.window.source.value


def test_a_stored_chat_is_judged_again_by_the_operator_s_word() -> None:
    pk = chat()
    assert window(pk) == (200_000, "agent")
    writes.window_override_set(model="gpt-*", window=160_000, note="served smaller")
    assert rejudge() == 1
    assert window(pk) == (160_000, "operator")
    row = queries.chat_get(pk)
    assert row is not None and row.summary.budget == 160_000 - 4_096
    assert verify().ok


def test_ending_it_gives_the_chat_back_to_the_other_sources() -> None:
    pk = chat()
    made = writes.window_override_set(model="*", window=160_000)
    rejudge()
    assert writes.window_override_end(override_id=made.pk)
    assert not writes.window_override_end(override_id=made.pk)
    assert rejudge() == 1
    assert window(pk) == (200_000, "agent")
    assert queries.window_overrides() == []


def test_one_that_makes_no_difference_touches_no_chat() -> None:
    pk = chat()
    writes.window_override_set(model="claude-*", window=160_000)
    assert rejudge() == 0
    assert window(pk) == (200_000, "agent")


def test_the_most_particular_word_counts() -> None:
    chat("a1")
    one, other = chat("a2"), chat("a3", provider="azure")
    for facts in (
        {"model": "*", "window": 100_000},
        {"model": "gpt-*", "window": 110_000},
        {"model": "gpt-x", "window": 120_000},
        {"model": "gpt-x", "window": 130_000, "provider": "azure"},
        {"model": "*", "window": 140_000, "agent": "a2"},
    ):
        writes.window_override_set(**facts)
    rejudge()
    first = queries.chat_find("a1", "c")
    assert first is not None
    assert window(first.id) == (120_000, "operator")
    assert window(one) == (140_000, "operator")
    assert window(other) == (130_000, "operator")


def test_a_new_word_for_the_same_ends_the_old_one_which_stays_on_record() -> None:
    for size in (100_000, 110_000):
        writes.window_override_set(model="gpt-x", window=size, note=f"{size}")
    rows = queries.window_overrides()
    assert [(row.model, row.window, row.note) for row in rows] == [("gpt-x", 110_000, "110000")]
    assert WindowOverride.objects.count() == 2
    said = AuditEntry.objects.filter(action="window_override.set").values_list("target", "result")
    assert list(said) == [("gpt-x", "done")] * 2


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"model": " ", "window": 5}, "^model: "),
        ({"model": "x" * 201, "window": 5}, "^model: "),
        ({"model": "m", "window": 0}, "^window: must be above 0, not 0"),
        ({"model": "m", "window": 2**53}, "^window: "),
        ({"model": "m", "window": 5, "max_input": 6}, "^max_input: "),
        ({"model": "m", "window": 5, "max_input": 0}, "^max_input: "),
        ({"model": "m", "window": 5, "provider": "p" * 201}, "^provider: "),
        ({"model": "m", "window": 5, "agent": "nobody"}, "^agent: none is called 'nobody'"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        writes.window_override_set(**facts)
    assert queries.window_overrides() == []


def test_beside_a_running_writer_the_command_leaves_the_judging_to_the_server(
    sender: Sender,
) -> None:
    with pytest.raises(RuntimeError, match="running server judges"):
        rejudge()


def test_new_events_are_folded_under_the_word_in_force(sender: Sender) -> None:
    writes.window_override_set(model="gpt-x", window=300_000)
    at = connect_agent()
    sender.send(at, [opened(1, "c", model="gpt-x", window=200_000)])
    found = queries.chat_find("a1", "c")
    assert found is not None
    assert window(found.id) == (300_000, "operator")
