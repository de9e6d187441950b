"""Replies without content."""

from __future__ import annotations

import json

import pytest

from ctxhealth.engine import Episode, HistoryError, Reply, empty_cause, judge_reply


@pytest.mark.parametrize(
    ("reply", "meaningful", "visible"),
    [
        (Reply("hello"), True, True),
        (Reply(""), False, False),
        (Reply(" \n\t"), False, False),
        (Reply(calls=1), True, False),
        (Reply(thinking=True), True, False),
        (Reply(data=True), True, True),
    ],
)
def test_what_counts_as_content(reply: Reply, meaningful: bool, visible: bool) -> None:
    assert reply.is_meaningful is meaningful
    assert reply.shows_something is visible


@pytest.mark.parametrize(
    ("reply", "budget", "cause"),
    [
        (Reply("x", prompt=999), 900, None),
        (Reply(synthetic=True, prompt=999), 900, None),
        (Reply(prompt=196_602, completion=0, finish="stop"), 192_512, "window_full"),
        (Reply(prompt=192_512), 192_512, "window_full"),
        (Reply(prompt=192_511), 192_512, "provider_empty"),
        (Reply(prompt=500, thinking=True, finish="length"), 900, "output_cap"),
        (Reply(prompt=500, thinking=True, finish="max_tokens"), None, "output_cap"),
        (Reply(prompt=950, thinking=True, finish="length"), 900, "window_full"),
        (Reply(prompt=500, thinking=True, finish="stop"), 900, None),
        (Reply(prompt=500, finish="length"), 900, "provider_empty"),
        (Reply(finish="stop"), 900, "unknown"),
        (Reply(thinking=True, finish="length"), 900, "output_cap"),
        (Reply(prompt=500, finish="stop"), None, "provider_empty"),
        (Reply(calls=1, prompt=999), 900, None),
    ],
)
def test_the_cause_of_an_empty_reply_is_never_guessed(
    reply: Reply, budget: int | None, cause: str | None
) -> None:
    assert empty_cause(reply, budget) == cause


EMPTY = Reply(prompt=196_602, completion=0)


def test_the_first_empty_reply_is_retried_once_with_a_continuation() -> None:
    episode, verdict = judge_reply(Episode(), EMPTY)
    assert verdict.action == "recover_and_retry"
    assert verdict.continuation
    assert verdict.warning is None
    assert episode == Episode(1, retried=True)


def test_the_second_is_a_visible_warning_with_both_counts() -> None:
    episode, _ = judge_reply(Episode(), EMPTY)
    episode, verdict = judge_reply(episode, EMPTY)
    assert (verdict.action, verdict.continuation) == ("warn", None)
    assert "2 empty replies in a row" in (verdict.warning or "")
    assert "prompt tokens 196,602, completion tokens 0" in (verdict.warning or "")
    assert episode == Episode(2, retried=False)


def test_counts_that_are_missing_are_called_unknown() -> None:
    _, verdict = judge_reply(Episode(1, retried=True), Reply())
    assert "prompt tokens unknown, completion tokens unknown" in (verdict.warning or "")


def test_the_next_turn_has_its_own_retry() -> None:
    episode = Episode()
    actions = []
    for _ in range(4):
        episode, verdict = judge_reply(episode, EMPTY)
        actions.append(verdict.action)
    assert actions == ["recover_and_retry", "warn", "recover_and_retry", "warn"]
    assert episode.empties == 4


@pytest.mark.parametrize("reply", [Reply("x"), Reply(calls=1), Reply(thinking=True)])
def test_a_meaningful_reply_ends_the_episode(reply: Reply) -> None:
    episode, verdict = judge_reply(Episode(3, retried=True), reply)
    assert (episode, verdict.action) == (Episode(), "pass")
    assert (verdict.continuation, verdict.warning) == (None, None)


def test_without_a_user_message_the_warning_comes_at_once() -> None:
    episode, verdict = judge_reply(Episode(), EMPTY, waiting_user=False)
    assert verdict.action == "warn"
    assert "an empty reply" in (verdict.warning or "")
    assert episode == Episode(1)


def test_a_synthetic_row_is_no_reply() -> None:
    before = Episode(1, retried=True)
    assert judge_reply(before, Reply(synthetic=True))[0] is before


def test_an_episode_survives_a_restart() -> None:
    episode = Episode(3, retried=True)
    assert Episode.from_dict(json.loads(json.dumps(episode.to_dict()))) == episode
    assert Episode.from_dict({}) == Episode()
    with pytest.raises(HistoryError, match=r"episode\.retried: must be true or false"):
        Episode.from_dict({"retried": 1})
