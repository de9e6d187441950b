from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxhealth.live.subscription import BadSubscription, Subscription, parse_subscription


def test_a_board_keeps_the_filters_of_its_page() -> None:
    asked = parse_subscription(b"view=board&state=over,stalled&q=a%20b")
    assert asked == Subscription("board", None, (("q", "a b"), ("state", "over,stalled")))


def test_the_order_of_filters_does_not_matter() -> None:
    one = parse_subscription(b"view=board&agent=a&model=m")
    assert one == parse_subscription(b"model=m&view=board&agent=a")


def test_a_chat_is_named_by_its_number() -> None:
    assert parse_subscription(b"view=chat:12").chat == 12


@pytest.mark.parametrize(
    "query",
    [
        b"",
        b"view=",
        b"view=incidents",
        b"view=chat",
        b"view=chat:",
        b"view=chat:-1",
        b"view=chat:1.5",
        b"view=chat:99999999999999999999",
        "view=chat:²".encode(),
        b"view=chat:%C2%B2",
        b"view=board&" + b"a=1&" * 60,
        b"view=board&q=" + b"x" * 2_000,
    ],
)
def test_anything_else_is_refused_with_the_field_at_fault(query: bytes) -> None:
    with pytest.raises(BadSubscription, match=r"^(view|query): "):
        parse_subscription(query)


@given(st.binary(max_size=300))
def test_no_query_string_breaks_it(query: bytes) -> None:
    try:
        asked = parse_subscription(query)
    except BadSubscription:
        return
    assert asked.view in ("board", "chat", "agents")
