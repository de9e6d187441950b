"""The published Reasonix, a fake provider, a real server: what the page says is what happened."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.agents.provider import Answer, Asked, Provider, Refusal, Slow, Step, overflow, says, slow
from tests.agents.reasonix.bridging import BridgeProcess
from tests.agents.reasonix.real import WINDOW, Reasonix, install
from tests.agents.server import House

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
MODEL = "fake-small"
SUMMARY = "## Goal\nwork\n## Progress\ndone\n## Next Steps\nmore\n## Critical Context\nnone"
LONG = "word " * 4_500


class Model:
    """Answers chats with ``chat`` and summaries with ``summary``; both may be changed."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.chat: Step = says("The answer.")
        self.summary: Step = says(SUMMARY)
        provider.script(MODEL, self)

    def __call__(self, asked: Asked) -> Answer | Refusal | Slow:
        # Only Reasonix's summaries have a cap of their own.
        found = self.summary if asked.body.get("max_tokens") else self.chat
        assert not callable(found)
        return found

    def prompts(self) -> list[int]:
        return [asked.prompt for asked in self.provider.asked if not asked.body.get("max_tokens")]


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("npm"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with House(tmp_path_factory.mktemp("house")) as made:
        yield made


@pytest.fixture
def model() -> Iterator[Model]:
    with Provider(stream_usage="always") as provider:
        yield Model(provider)


@pytest.fixture
def reasonix(binary: Path, model: Model, tmp_path: Path) -> Iterator[Reasonix]:
    made = Reasonix(binary, tmp_path, model.provider.url)
    yield made.start()
    made.stop()


@pytest.fixture
def bridge(house: House, reasonix: Reasonix, tmp_path: Path) -> Iterator[BridgeProcess]:
    made = BridgeProcess(
        tmp_path / "state", url=house.url, token=house.agent_token, host=reasonix.url,
        token_file=reasonix.token_file,
    )  # fmt: skip
    yield made.start()
    made.stop()


def fill(reasonix: Reasonix, model: Model, turns: int) -> None:
    model.chat = says(LONG)
    for number in range(turns):
        reasonix.say(f"question {number}")


def attempts(house: House, session: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = house.chat(session)["attempts"]
    return found


def test_turns_and_a_fold_under_pressure_are_on_the_page(
    house: House, reasonix: Reasonix, model: Model, bridge: BridgeProcess
) -> None:
    session = reasonix.session
    house.chat(session)
    fill(reasonix, model, 8)
    prompts = model.prompts()
    replied = house.until(
        lambda: (found := house.events(session, "model.replied")) and len(found) == 8 and found,
        "8 replies",
    )
    assert [event["usage"]["input"] for event in replied] == prompts
    chat = house.chat(session)
    assert chat["load"]["value"] == prompts[-1]
    assert (chat["window"]["value"], chat["model"]) == (WINDOW, MODEL)
    folds = attempts(house, session)
    assert folds and {fold["outcome"] for fold in folds} == {"reduced"}
    assert {fold["trigger"] for fold in folds} == {"proactive"}
    assert not house.events(session, "gap")


def test_a_press_compacts_and_tells_reasonix_own_numbers(
    house: House, reasonix: Reasonix, model: Model, bridge: BridgeProcess
) -> None:
    session = reasonix.session
    house.chat(session)
    fill(reasonix, model, 4)
    before = reasonix.used()
    done = house.ended(house.press(session, "compact_summarize"))
    assert (done["state"], done["before"]) == ("succeeded", before)
    assert done["after"] == reasonix.used() < before
    assert attempts(house, session)[0]["outcome"] == "reduced"


@pytest.mark.parametrize(
    ("summary", "error"),
    [(Answer(""), "empty"), (Refusal(402, "insufficient_quota", "No credits."), "quota")],
)
def test_a_dead_summarizer_is_the_command_s_real_outcome(
    summary: Any, error: str, house: House, reasonix: Reasonix, model: Model, bridge: BridgeProcess
) -> None:
    session = reasonix.session
    house.chat(session)
    fill(reasonix, model, 4)
    model.summary = summary
    done = house.ended(house.press(session, "compact_summarize"), 60)
    assert done["state"] == "failed", done
    attempt = house.until(lambda: attempts(house, session), "the attempt")[0]
    assert (attempt["outcome"], attempt["error_class"]) == ("summarizer_failed", error), attempt


def test_pressure_with_a_dead_summarizer_stalls_and_is_said(
    house: House, reasonix: Reasonix, model: Model, bridge: BridgeProcess
) -> None:
    session = reasonix.session
    house.chat(session)
    fill(reasonix, model, 5)
    model.summary = Answer("")
    model.chat = says("short")
    for number in range(3):
        reasonix.say(f"and now {number}")
    failed = [a for a in attempts(house, session) if a["outcome"] == "summarizer_failed"]
    assert len(failed) >= 2, attempts(house, session)
    codes = {finding["code"] for finding in house.chat(session)["findings"]}
    assert "summarizer_failing" in codes


def test_an_overflow_is_read_from_the_text_and_empties_end_the_turn(
    house: House, reasonix: Reasonix, model: Model, bridge: BridgeProcess
) -> None:
    session = reasonix.session
    house.chat(session)
    model.chat = overflow(20_000, 21_500)
    assert reasonix.say("too much")["turnStatus"] == "failed"
    failed = house.until(lambda: house.events(session, "model.failed"), "the failure")
    assert (failed[0]["error"], failed[0]["status"]) == ("invalid", 400)
    assert house.chat(session)["window"]["value"] == 20_000
    model.chat = Answer("")
    assert reasonix.say("say nothing")["turnStatus"] == "failed"
    house.until(lambda: house.chat(session)["empty_replies"] == 4, "four empty replies")


def test_stop_ends_the_turn_and_a_press_waits_for_it(
    house: House, reasonix: Reasonix, model: Model, bridge: BridgeProcess
) -> None:
    session = reasonix.session
    house.chat(session)
    fill(reasonix, model, 3)
    model.chat = slow(60, says("late"))
    reasonix.submit("take your time")
    house.until(lambda: house.events(session, "request.sent")[3:], "the open call")
    assert house.ended(house.press(session, "stop_turn"))["state"] == "succeeded"
    assert house.events(session, "turn.ended")[-1]["outcome"] == "cancelled"
    again = house.ended(house.press(session, "stop_turn"))
    assert (again["state"], again["state_reason"]) == ("refused", "stale")
    gate = Event()
    model.chat = slow(60, says("at last"), gate)
    reasonix.submit("and again")
    house.until(lambda: house.events(session, "request.sent")[4:], "the open call")
    pressed = house.press(session, "compact_summarize")
    path = f"/api/v1/commands/{pressed['id']}"
    house.until(lambda: house.get(path)["command"]["state"] == "waiting", "it to wait")
    gate.set()
    assert house.ended(pressed)["state"] == "succeeded"


def test_what_happened_while_the_bridge_was_away_is_told_once_with_its_gap(
    house: House, reasonix: Reasonix, model: Model, bridge: BridgeProcess
) -> None:
    session = reasonix.session
    house.chat(session)
    reasonix.say("first")
    house.until(lambda: house.events(session, "turn.ended"), "the first turn")
    bridge.stop(signal.SIGKILL)
    reasonix.say("second")
    bridge.start()
    house.until(lambda: len(house.events(session, "turn.ended")) == 2, "the second turn")
    texts = [event.get("excerpt") for event in house.events(session, "message.added")]
    assert texts == ["first", "The answer.", "second", "The answer."]
    assert len(house.events(session, "gap")) == 1
    assert len(house.events(session, "model.replied")) == 1
    bridge.stop()
    bridge.start()
    reasonix.stop()
    reasonix.start()
    reasonix.ask("POST", "/new", {})
    house.chat(reasonix.session)
    reasonix.say("elsewhere")
    house.until(lambda: house.events(reasonix.session, "turn.ended"), "the new session")
    assert len(house.events(session, "gap")) == 1
    assert len(house.events(session, "message.added")) == 4
    assert house.events(session, "chat.closed")
