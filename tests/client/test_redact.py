"""Secrets do not leave the process; ordinary text does, unchanged."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxhealth.client.bodies import body
from ctxhealth.client.redact import redact, redact_value, suspicious
from ctxhealth.client.texts import TextPolicy, excerpt

_A = "aB3dE6gH9jK2mN5pQ8sT1vW4"
SECRETS = {
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + _A + _A,
    "github fine": "github_pat_" + _A,
    "gitlab": "glpat-" + _A,
    "openai": "sk-" + _A,
    "openai project": "sk-proj-" + _A + "_-" + _A,
    "anthropic": "sk-ant-api03-" + _A + "-" + _A,
    "stripe": "sk_live_" + _A,
    "google": "AIza" + _A + "abcdefghijk",
    "hugging face": "hf_" + _A,
    "slack": "xoxb-" + "123456789012-" + _A,
    "ours": "ctxh_0123456789ab_" + _A,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + _A,
    "password": "hunter2hunter2",
    "bearer": _A + "/" + _A,
    "basic": "dXNlcjpwYXNzd29yZHBhc3M=",
    "aws secret": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "pem": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj",
}
SHAPES = {
    "password": "postgres://user:{}@db.example:5432/x",
    "bearer": "Authorization: Bearer {}",
    "basic": "authorization: basic {}",
    "aws secret": 'aws_secret_access_key = "{}"',
    "pem": "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_masked_wherever_it_stands(name: str) -> None:
    secret = SECRETS[name]
    text = SHAPES.get(name, "{}").format(secret)
    for around in (f"{text}", f"see {text} there", f'{{"k": "{text}"}}', f"ä\n{text}\n"):
        clean = redact(around)
        assert secret not in clean and "[redacted: " in clean
        assert redact(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "task-based desk-1 risk-sk-short disk-usage-of-the-node",
        "https://example.org/a:b@c and https://example.org:8080/x?y=z",
        "git@github.com:owner/name.git",
        "The bearer of news; Bearer tokens are explained on page 3.",
        "a sha256: 2affc513283b3553b2e9e643828e899d869463950ce0e6a3dd81e1c2c784c990",
        "eyJ alone, AKIA alone, xoxo, ghp_ and -----BEGIN CERTIFICATE-----",
        "uuid 01a22da3-d6b1-70e0-a2c9-a1d66df92d62",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


@given(st.text())
def test_redaction_is_idempotent_and_what_is_not_suspicious_is_unchanged(text: str) -> None:
    clean = redact(text)
    assert redact(clean) == clean
    if not suspicious(text):
        assert clean == text


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_across_the_cut_of_an_excerpt_leaves_no_part_of_itself(name: str) -> None:
    text = SHAPES.get(name, "{}").format(SECRETS[name])
    for start in range(340, 402):
        shown = excerpt("." * (start - 1) + " " + text + " tail")
        assert len(shown) <= 400
        assert SECRETS[name][:12] not in shown


def test_a_key_cut_before_its_end_marker_is_masked_too() -> None:
    text = "-----BEGIN PRIVATE KEY-----\n" + SECRETS["pem"] * 200
    assert SECRETS["pem"] not in redact(text[:2_000])


def test_every_string_of_an_event_is_redacted_also_in_fields_nobody_thought_of() -> None:
    secret = SECRETS["github"]
    given_fields = {
        "title": secret,
        "detail": {"deep": [{"er": f"x {secret} y"}]},
        "steps": [{"step": secret}],
        "unheard_of": [secret],
        "labels": {"k": secret},
    }
    for mode in ("none", "excerpt", "full"):
        raw = body("chat.updated", 1, "c", dict(given_fields), TextPolicy(mode))
        assert secret not in raw.decode() and json.loads(raw)["type"] == "chat.updated"


def test_values_of_other_kinds_and_keys_are_kept() -> None:
    value = {"AKIAIOSFODNN7EXAMPLE": [1, None, True, 2.5, "AKIAIOSFODNN7EXAMPLE"]}
    clean = redact_value(value)
    assert clean["AKIAIOSFODNN7EXAMPLE"] == [1, None, True, 2.5, "[redacted: aws key]"]


@pytest.mark.parametrize(
    "evil",
    [
        "-----BEGIN " * 20_000,
        "-----BEGIN RSA PRIVATE KEY-----" + "-" * 200_000,
        "eyJ" * 70_000,
        "eyJaaaaaaaa." * 20_000,
        "://" * 70_000,
        "://a:b" * 40_000,
        "sk-" * 70_000,
        "Bearer " * 30_000,
        "ghp_" * 50_000,
        "aws_secret_access_key" * 10_000,
        "secret_access_key=:" * 10_000,
    ],
)
def test_the_time_is_linear_in_hostile_text(evil: str) -> None:
    half = evil[: len(evil) // 4]
    small, large = _seconds(half), _seconds(evil)
    # Four times the text; quadratic would be sixteen. The floor keeps noise out.
    assert large < 9 * max(small, 0.004)


def _seconds(text: str) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        redact(text)
        times.append(time.process_time() - start)
    return min(times)
