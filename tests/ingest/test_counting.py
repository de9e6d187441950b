"""A text without a count is counted by the server, once, and a replay finds the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxhealth.store import queries, writes
from ctxhealth.store.counted import uncounted
from ctxhealth.store.models import Chat, Event, Item
from ctxhealth.store.verify import verify
from ctxhealth.tokens import count
from tests.contract.conftest import World, world
from tests.ingest.test_http import post, statuses
from tests.store.streams import intakes, message, opened, raw

__all__ = ["world"]
WORDS = "The greenhouse needs water twice a day in July. " * 40
db = [pytest.mark.db, pytest.mark.django_db(transaction=True)]


def said(seq: int, **fields: Any) -> dict[str, Any]:
    """A message of which only the text is told."""
    told = {**message(seq, text=WORDS), **fields}
    return {key: value for key, value in told.items() if key != "tokens" or "tokens" in fields}


def stored(seq: int) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(Event.objects.get(seq=seq).body)
    return body


@pytest.fixture
def token(transactional_db: None) -> str:
    return writes.token_create(name="http", scopes=["ingest"]).secret


def state() -> Any:
    return queries.chat_state(Chat.objects.get().pk)


class TestOverHttp:
    pytestmark = db

    def test_the_model_s_own_vocabulary_gives_an_exact_count(self, token: str) -> None:
        post(token, [raw(opened(1, model="gpt-4o")), raw(said(2))])
        tokens = count(WORDS, "gpt-4o").tokens
        assert stored(2)["counted"] == {"tokens": tokens, "exact": True}
        assert Item.objects.get().tokens == tokens
        history = state().history
        assert (history.value, history.source, history.estimate) == (tokens, "local", False)
        assert verify().problems == []

    def test_for_another_model_it_is_an_estimate_that_no_finding_of_the_history_rests_on(
        self, token: str
    ) -> None:
        post(token, [raw(opened(1, model="claude-sonnet-4-5", history_limit=100)), raw(said(2))])
        assert stored(2)["counted"]["exact"] is False
        history = state().history
        assert history.estimate and history.value is None
        assert history.heavy[0].estimate and history.heavy[0].tokens > 300
        assert verify().problems == []

    def test_the_model_is_that_of_the_chat_as_stored(self, token: str) -> None:
        post(token, [raw(opened(1, model="gpt-4o"))])
        post(token, [raw(said(2))])
        assert stored(2)["counted"]["exact"] is True

    @pytest.mark.parametrize(
        "fields",
        [{"tokens": 7}, {"text": None}, {"text": ""}, {"kind": "tool_call"}, {"kind": "image"}],
    )
    def test_what_the_agent_counted_or_keeps_to_itself_is_left_alone(
        self, token: str, fields: dict[str, Any]
    ) -> None:
        given = {key: value for key, value in said(2, **fields).items() if value is not None}
        post(token, [raw(opened(1)), raw(given)])
        assert stored(2) == given

    def test_the_same_event_again_is_no_conflict_and_another_text_is(self, token: str) -> None:
        post(token, [raw(opened(1, model="gpt-4o")), raw(said(2)), raw(said(3))])
        Event.objects.filter(seq=2).update(
            body=Event.objects.get(seq=2).body.replace('"exact":true', '"exact":false')
        )
        _, answer = post(token, [raw(opened(1, model="gpt-4o")), raw(said(2)), raw(said(3))])
        assert statuses(answer) == ["duplicate"] * 3
        _, answer = post(token, [raw(said(2, text="other"))])
        assert statuses(answer) == ["conflict"]

    def test_an_agent_cannot_say_what_the_server_counted(self, token: str) -> None:
        forged = said(2, counted={"tokens": 5, "exact": True})
        _, answer = post(token, [raw(opened(1)), raw(forged)])
        assert statuses(answer) == ["stored", "rejected"]
        assert answer["results"][1]["path"] == "$.counted"

    def test_a_secret_is_taken_out_before_it_is_counted(self, token: str) -> None:
        secret = "sk-ant-api03-" + "Ab1" * 30
        post(token, [raw(opened(1, model="gpt-4o")), raw(said(2, text=f"key: {secret}"))])
        body = stored(2)
        assert secret not in body["text"]
        assert body["counted"]["tokens"] == count(body["text"], "gpt-4o").tokens


def test_over_the_socket_counts_come_in_order_with_the_rest(world: World) -> None:
    with world.agent() as agent:
        agent.hello(agent="counting")
        # The first text of all waits for the vocabulary, which takes longer than one may wait.
        agent.events([opened(1, "warm", model="gpt-4o"), said(2, chat="warm")])
        agent.acked(2)
        agent.events([opened(3, model="gpt-4o"), said(4), message(5), said(6)])
        agent.events([message(7), said(8)])
        agent.acked(8)
    assert world.seqs("counting") == [*range(1, 9)]
    sql = "SELECT body FROM store_event WHERE chat_id = ? AND seq IS NOT NULL ORDER BY chat_seq"
    bodies = [json.loads(row[0]) for row in world.rows(sql, world.chat("counting"))]
    exact = {"tokens": count(WORDS, "gpt-4o").tokens, "exact": True}
    assert [body.get("counted") for body in bodies] == [None, exact, None, exact, None, exact]
    with world.agent() as agent:
        agent.hello(agent="counting")
        agent.events([said(9)])
        agent.acked(9)
    assert json.loads(world.rows(sql, world.chat("counting"))[-1][0])["counted"] == exact
    world.verify()


def test_a_counted_message_asks_for_nothing_and_a_chat_s_model_is_remembered() -> None:
    models: dict[str, str] = {}
    assert uncounted(intakes([opened(1, model="m"), message(2)]), models) == []
    assert models == {"c1": "m"}
