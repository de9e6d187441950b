from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxhealth.wire import EVENT_TYPES, Reject, UnknownEvent, decode_event, decode_stored
from ctxhealth.wire.canonical import NotCanonical, canonicalise, loads
from ctxhealth.wire.events import AGENT_TYPES, MessageAdded
from ctxhealth.wire.limits import EVENT_BYTES, JSON_DEPTH


def message(**fields: Any) -> dict[str, Any]:
    base = {"seq": 1, "type": "message.added", "ts": 1_790_000_000_000, "chat": "c"}
    return base | {"id": "m1", "role": "user", "kind": "text"} | fields


def raw(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def test_a_plain_event_decodes_to_its_struct_and_to_a_compact_body() -> None:
    decoded = decode_event(raw(message(tokens=12)))
    assert isinstance(decoded.event, MessageAdded)
    assert decoded.event.tokens == 12
    assert json.loads(decoded.body) == message(tokens=12)
    assert decoded.replaced == 0


def test_what_is_absent_is_unknown_and_not_zero() -> None:
    event = decode_event(raw(message())).event
    assert isinstance(event, MessageAdded)
    assert event.tokens is None
    assert event.bytes is None


@pytest.mark.parametrize(
    "extra", [{"colour": "red"}, {"nested": {"a": [1, {"b": 2}]}}, {"tokens": None}]
)
def test_unknown_fields_and_nulls_are_kept_in_the_stored_body(extra: dict[str, Any]) -> None:
    decoded = decode_event(raw(message(**extra)))
    assert json.loads(decoded.body) == message(**extra)
    assert isinstance(decoded.event, MessageAdded)


def test_unknown_fields_inside_a_nested_value_are_kept_too() -> None:
    sent = {"seq": 4, "type": "model.replied", "ts": 5, "chat": "c", "request": "r"}
    sent["usage"] = {"dialect": "openai", "input": 10, "audio": 3}
    assert json.loads(decode_event(raw(sent)).body) == sent


def test_an_unknown_type_is_stored_and_not_rejected() -> None:
    decoded = decode_event(b'{"seq":3,"type":"dream.started","ts":4,"chat":"c","x":{"y":1}}')
    assert decoded.event == UnknownEvent(seq=3, ts=4, type="dream.started", chat="c")
    assert decode_stored(decoded.body) == decoded.event


REJECTS: list[tuple[bytes, str, str]] = [
    (raw(message(tokens=-1)), "schema", "$.tokens"),
    (raw(message(tokens=1.5)), "schema", "$.tokens"),
    (raw(message(tokens=2**53)), "number_range", "$.tokens"),
    (raw(message(role="oracle")), "schema", "$.role"),
    (raw(message(id="")), "schema", "$.id"),
    (raw(message(chat="c" * 201)), "schema", "$.chat"),
    (raw(message(seq=0)), "schema", "$.seq"),
    (raw(message())[:-1] + b',"size":1e999}', "not_finite", "$.size"),
    (raw(message())[:-1] + b',"extra":[0,1e999]}', "not_finite", "$.extra[1]"),
    (raw(message())[:-1] + b',"extra":NaN}', "not_finite", "$.extra"),
    (raw(message())[:-1] + b',"extra":-Infinity}', "not_finite", "$.extra"),
    (raw(message())[:-1] + b',"extra":' + b"9" * 4301 + b"}", "number_range", "$.extra"),
    (raw(message(tokens=1))[:-1] + b',"tokens":2}', "duplicate_key", "$.tokens"),
    (raw(message(excerpt="a")).replace(b'"a"', b'"\xff"'), "not_utf8", "$"),
    (raw(message())[:-1] + b',"x":' + b"[" * 21 + b"]" * 21 + b"}", "too_deep", "$"),
    (b'{"seq":1,"x":' + b"[" * 30_000 + b"}", "too_deep", "$"),
    (b"x" * (EVENT_BYTES + 1), "too_big", "$"),
    (b"[]", "schema", "$"),
    (b"17", "schema", "$"),
    (b'{"seq":1', "not_json", "$"),
    (b'{"seq":1,"type":"server.tick","ts":4}', "schema", "$.type"),
    (b'{"seq":1,"ts":4}', "schema", "$"),
    (b'{"seq":1,"type":7,"ts":4}', "schema", "$.type"),
]


@pytest.mark.parametrize(("sent", "code", "path"), REJECTS)
def test_a_bad_event_is_rejected_with_code_and_field(sent: bytes, code: str, path: str) -> None:
    with pytest.raises(Reject) as caught:
        decode_event(sent)
    assert (caught.value.code, caught.value.path) == (code, path)
    assert caught.value.detail


def test_a_reject_still_names_the_sequence_number_and_the_type() -> None:
    with pytest.raises(Reject) as caught:
        decode_event(raw(message(seq=77, tokens=-1)))
    assert (caught.value.seq, caught.value.kind) == (77, "message.added")


def test_nul_and_lone_surrogates_become_storable_characters() -> None:
    sent = raw(message(excerpt="a")).replace(b'"a"', b'"a\\u0000b\\ud800c"')
    decoded = decode_event(sent)
    assert isinstance(decoded.event, MessageAdded)
    assert decoded.event.excerpt == "a\u2400b\ufffdc"
    assert decoded.replaced == 2
    assert b"\\u0000" not in decoded.body


def test_an_escaped_pair_is_one_character() -> None:
    sent = raw(message(excerpt="a")).replace(b'"a"', b'"\\ud83d\\ude00"')
    event = decode_event(sent).event
    assert isinstance(event, MessageAdded)
    assert event.excerpt == "\U0001f600"


def test_brackets_inside_strings_are_not_depth() -> None:
    decoded = decode_event(raw(message(excerpt="[{" * 100)))
    assert isinstance(decoded.event, MessageAdded)


def test_depth_at_the_limit_is_accepted() -> None:
    nest = "[" * (JSON_DEPTH - 1) + "]" * (JSON_DEPTH - 1)
    decode_event(raw(message())[:-1] + f',"x":{nest}}}'.encode())


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**53) + 1, max_value=2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_canonical_values_stay_as_they_are(value: Any) -> None:
    try:
        once, _ = canonicalise(value)
    except NotCanonical:
        return
    again, replaced = canonicalise(once)
    assert (again, replaced) == (once, 0)


@given(st.binary(max_size=300))
def test_no_bytes_make_the_decoder_raise_anything_but_reject(sent: bytes) -> None:
    try:
        decode_event(sent)
    except Reject as reject:
        assert reject.detail


@given(st.dictionaries(st.sampled_from([*MessageAdded.__struct_fields__, "x"]), JSON_VALUES))
def test_any_message_either_decodes_or_is_rejected(fields: dict[str, Any]) -> None:
    sent = json.dumps(message(**fields)).encode()
    try:
        decoded = decode_event(sent)
    except Reject:
        return
    assert decode_stored(decoded.body) == decoded.event


@given(JSON_VALUES)
def test_the_strict_parser_agrees_with_the_standard_one(value: Any) -> None:
    try:
        text = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert loads(text) == json.loads(text)


def test_every_event_type_has_a_struct_with_a_docstring_or_is_plain() -> None:
    assert len(EVENT_TYPES) == 25
    assert len(AGENT_TYPES) == 21
