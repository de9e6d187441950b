"""Forms: the press of an action, and what admins configure."""

from __future__ import annotations

from django import forms

SCOPE_SETS = (
    ("ingest command", "agent: report and take commands"),
    ("ingest", "agent: report only"),
    ("read", "script: read the API"),
    ("read operate", "script: read the API and press actions"),
)

ROLE_CHOICES = (
    ("viewer", "viewer: looks"),
    ("operator", "operator: looks and presses"),
    ("admin", "admin: configures too"),
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


class RotateForm(forms.Form):
    """``hours`` that the old token still works."""

    hours = forms.IntegerField(min_value=0, max_value=30 * 24, initial=24)


class PersonForm(forms.Form):
    name = forms.CharField(max_length=150, label="Name")
    role = forms.ChoiceField(choices=ROLE_CHOICES, label="Role", initial="operator")


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=ROLE_CHOICES)


class OverrideForm(forms.Form):
    model = forms.CharField(
        max_length=200, label="Model", help_text="an id, or a pattern with * and ?"
    )
    window = forms.IntegerField(min_value=1, label="Window, tokens")
    max_input = forms.IntegerField(
        min_value=1, required=False, label="Most input, tokens", help_text="if less than the window"
    )
    provider = forms.CharField(
        max_length=200, required=False, label="Provider", help_text="empty: any"
    )
    agent = forms.CharField(
        max_length=200, required=False, label="Agent", help_text="empty: every one"
    )
    note = forms.CharField(max_length=500, required=False, label="Why")


class TableForm(forms.Form):
    """Its files are read from the request: there may be several."""


class ThresholdForm(forms.Form):
    value = forms.FloatField()
    reason = forms.CharField(max_length=500, required=False)

    def first_error(self) -> str:
        return str(next(iter(self.errors.values()))[0])


class RetentionForm(forms.Form):
    days = forms.IntegerField(min_value=1, max_value=3_650, label="Days")
    reason = forms.CharField(max_length=500, required=False, label="Why")


class LoginForm(forms.Form):
    username = forms.CharField(max_length=150)
    password = forms.CharField(max_length=4096, strip=False)
