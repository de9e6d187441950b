"""A real runtime host, a fake provider, a real server: what the page says is what happened.

Needs a built tree of Maka 0.1.11 (epoch 39), named by CTXHEALTH_MAKA_TREE; skipped without one,
as Maka is not published where tests may install from. With CTXHEALTH_MAKA_RECORD the event
streams are written into ``streams/``, where the default run replays them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.agents.maka.host import READING_GRANTS
from tests.agents.maka import real
from tests.agents.maka.real import MODEL, RealHost
from tests.agents.maka.rig import Running
from tests.agents.maka.strictness import refuses
from tests.agents.provider import (
    Answer,
    Asked,
    Provider,
    Refusal,
    Slow,
    empty,
    overflow,
    says,
    slow,
)
from tests.agents.server import House

pytestmark = [
    pytest.mark.agents,
    pytest.mark.timeout(600),
    pytest.mark.skipif(real.TREE is None, reason="CTXHEALTH_MAKA_TREE names no built Maka"),
]
Frame = dict[str, Any]
STREAMS = Path(__file__).parent / "streams"
SUMMARY = (
    "## Goal\nFind every caller of the billing API.\n\n## Progress\n- most are found\n\n"
    "## Next Steps\n- list the rest\n\n## Critical Context\n- none beyond that\n"
)


class Model:
    """Answers chats with the next of ``chat`` (the last stays), summaries with ``summary``."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.chat: list[Answer | Refusal | Slow] = [says("The answer. " * 5)]
        self.summary: Answer | Refusal | Slow = says(SUMMARY)
        provider.script(MODEL, self)

    def __call__(self, asked: Asked) -> Answer | Refusal | Slow:
        if not asked.body.get("tools"):
            return self.summary
        return self.chat.pop(0) if len(self.chat) > 1 else self.chat[0]

    def prompts(self) -> list[int]:
        """Of the chat's requests that were answered, as the provider counted them."""
        return [a.prompt for a in self.provider.asked if a.body.get("tools") and a.status == 200]


def call(words: int) -> Answer:
    return says("", calls=(("Bash", {"command": "echo " + "y " * words}),))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with House(tmp_path_factory.mktemp("house")) as made:
        yield made


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(stream_usage="always") as provider:
        yield provider


@pytest.fixture
def model(provider: Provider) -> Model:
    return Model(provider)


@pytest.fixture
def host(tmp_path: Path, provider: Provider, model: Model) -> Iterator[RealHost]:
    with RealHost(tmp_path / "maka", provider) as host:
        # Making the connection asked for the list of models and scripted it anew.
        provider.script(MODEL, model)
        yield host


@pytest.fixture
def bridge(host: RealHost, house: House, tmp_path: Path) -> Iterator[Running]:
    given = (tmp_path / "state", host.url, house.url, house.agent_token)
    with Running(*given, credential=host.credential) as running:
        yield running


def settled(house: House, session: str, turns: int) -> list[Frame]:
    """The chat's events once so many turns have ended."""

    def enough() -> list[Frame] | None:
        events = house.events(session)
        ended = [event for event in events if event["type"] == "turn.ended"]
        return events if len(ended) >= turns else None

    events: list[Frame] = house.until(enough, f"no {turns} turns ended", 60)
    return events


def record(name: str, events: list[Frame]) -> None:
    if not os.environ.get("CTXHEALTH_MAKA_RECORD"):
        return
    STREAMS.mkdir(exist_ok=True)
    lines = [json.dumps({k: v for k, v in e.items() if k != "chat_seq"}) for e in events]
    (STREAMS / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def inputs(events: list[Frame]) -> list[int]:
    return [
        event["usage"]["input"]
        for event in events
        if event["type"] == "model.replied" and event.get("purpose") != "utility"
    ]


def test_a_compaction_within_a_turn_and_one_by_the_button(
    host: RealHost, house: House, bridge: Running, model: Model
) -> None:
    session = host.session("Callers of billing", "real-healthy")
    host.owner.turn(session, "first " * 2_000)
    model.chat = [call(1_000), call(2_500), call(2_500), call(2_500), says("done")]
    host.owner.turn(session, "go on")
    events = settled(house, session, 2)
    assert inputs(events) == model.prompts()
    chat = house.chat(session)
    assert chat["load"]["value"] == model.prompts()[-1]
    assert chat["window"]["value"] == 16_000
    assert [a["outcome"] for a in chat["attempts"]] == ["reduced"]
    text = json.dumps(events)
    assert "go on" not in text and "first first" not in text and "The answer" not in text
    record("real-healthy", events)


def test_the_button_folds_says_when_there_is_nothing_and_when_the_summary_is_empty(
    host: RealHost, house: House, bridge: Running, model: Model
) -> None:
    session = host.session("Forced", "real-forced")
    for words in (3_000, 2_500):
        host.owner.turn(session, "more " * words)
    settled(house, session, 2)
    model.summary = empty()
    failed = house.ended(house.press(session, "compact_summarize"))
    assert failed["state_reason"] == "Maka's compaction failed: empty_summary"
    model.summary = says(SUMMARY)
    folded = house.ended(house.press(session, "compact_summarize"))
    assert folded["state"] == "succeeded" and folded["after"] < folded["before"]
    again = house.ended(house.press(session, "compact_summarize"))
    assert again["state_reason"] == "Maka changed nothing: already_compacted"
    before = model.prompts()[-1]
    host.owner.turn(session, "and now?")
    events = settled(house, session, 3)
    assert model.prompts()[-1] < before
    assert house.chat(session)["load"]["value"] == model.prompts()[-1]
    outcomes = [a["outcome"] for a in reversed(house.chat(session)["attempts"])]
    assert outcomes[:2] == ["summarizer_failed", "reduced"]
    record("real-forced", events)


def test_summaries_that_say_nothing_until_maka_gives_the_turn_up(
    host: RealHost, house: House, bridge: Running, model: Model
) -> None:
    session = host.session("Exhausted", "real-exhausted")
    model.summary, model.chat = empty(), [call(2_500)]
    over = host.owner.turn(session, "go on")
    assert over["failureClass"] == "context_budget_exhausted"
    events = settled(house, session, 1)
    outcomes = {a["outcome"] for a in house.chat(session)["attempts"]}
    assert outcomes == {"summarizer_failed"}
    assert [e["code"] for e in events if e["type"] == "guard.refused"] == [over["failureClass"]]
    record("real-exhausted", events)


def test_an_overflow_and_its_rescue(
    host: RealHost, house: House, bridge: Running, model: Model
) -> None:
    session = host.session("Overflow", "real-overflow")
    host.owner.turn(session, "first " * 3_000)
    model.chat = [overflow(16_000, 17_000), says("saved")]
    host.owner.turn(session, "once more")
    model.summary, model.chat = empty(), [overflow(16_000, 17_000)]
    over = host.owner.turn(session, "again " * 2_000)
    assert over["failureClass"] == "context_overflow"
    events = settled(house, session, 3)
    errors = [e["error"] for e in events if e["type"] == "model.failed"]
    assert errors and set(errors) == {"overflow"}
    codes = {f["code"]: f["severity"] for f in house.chat(session)["findings"]}
    assert codes["over_window"] == "critical"
    record("real-overflow", events)


def test_stop_ends_the_running_turn(
    host: RealHost, house: House, bridge: Running, model: Model
) -> None:
    session = host.session("Stop", "real-stop")
    model.chat = [slow(60, says("too late"))]
    turn = host.owner.begin(session, "take your time")
    house.until(lambda: any(e["type"] == "turn.started" for e in house.events(session)), "no turn")
    pressed = house.ended(house.press(session, "stop_turn"))
    assert pressed["state"] == "succeeded", pressed
    assert host.owner.ended(session, turn)["status"] == "cancelled"
    assert settled(house, session, 1)[-1]["type"] in ("turn.ended", "command.progress")
    ended = [e for e in house.events(session) if e["type"] == "turn.ended"]
    assert ended[0]["outcome"] == "cancelled"


def test_a_restarted_host_is_followed_on_and_nothing_comes_twice(
    host: RealHost, house: House, bridge: Running, model: Model
) -> None:
    session = host.session("Restart", "real-restart")
    host.owner.turn(session, "one")
    settled(house, session, 1)
    host.again()
    host.owner.turn(session, "two")
    events = settled(house, session, 2)
    sent = [event["request"] for event in events if event["type"] == "request.sent"]
    assert len(sent) == len(set(sent)) == 2


def test_a_credential_for_reading_only_shows_all_and_does_nothing(
    host: RealHost, house: House, model: Model, tmp_path: Path
) -> None:
    session = host.session("Reading", "real-reading")
    credential = host.issue(READING_GRANTS, "reader")
    given = (tmp_path / "reader", host.url, house.url, house.agent_token)
    with Running(*given, credential=credential):
        host.owner.turn(session, "one")
        settled(house, session, 1)
        pressed = house.ended(house.press(session, "compact_summarize"))
    assert pressed["state"] == "refused"
    assert "lacks the grant context.compact" in str(pressed)


def test_it_refuses_what_the_fake_host_refuses(host: RealHost, model: Model) -> None:
    sessions = [host.session(f"Strict {n}", f"real-strict-{n}") for n in range(17)]
    refuses(host.url, host.credential, sessions)
