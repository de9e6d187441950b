"""Forms: the press of an action, a new token."""

from __future__ import annotations

from django import forms

SCOPE_SETS = (
    ("ingest command", "agent: report and take commands"),
    ("ingest", "agent: report only"),
    ("read", "script: read the API"),
    ("read operate", "script: read the API and press actions"),
)


class PressForm(forms.Form):
    """``seen`` is the number of compactions on the page the operator pressed from."""

    reason = forms.CharField(
        max_length=500,
        error_messages={"required": "Say in a few words why: it stands in the audit trail."},
    )
    idempotency_key = forms.CharField(max_length=64)
    seen = forms.IntegerField(min_value=0)
    latch = forms.CharField(max_length=200, required=False)
    command = forms.CharField(max_length=64, required=False)
    then = forms.BooleanField(required=False)
    sure = forms.BooleanField(required=False)


class TokenForm(forms.Form):
    name = forms.CharField(max_length=200, label="Name")
    scopes = forms.ChoiceField(choices=SCOPE_SETS, label="May")
    agent_name = forms.CharField(max_length=200, required=False, label="Only for the agent named")
    days = forms.IntegerField(
        min_value=1, max_value=3650, required=False, label="Expires after days"
    )


class LoginForm(forms.Form):
    username = forms.CharField(max_length=150)
    password = forms.CharField(max_length=4096, strip=False)
