"""Addresses of the page for those on call."""

from __future__ import annotations

from django.urls import path

from ctxhealth.web.views import oncall

urlpatterns = [
    path("oncall/", oncall.oncall, name="oncall"),
    path("oncall/now/", oncall.oncall_now, name="oncall_now"),
    path("oncall/handover/", oncall.handover, name="handover"),
    path("oncall/causes/<int:group_id>/owner/", oncall.group_own, name="oncall_own"),
    path("oncall/causes/<int:group_id>/silence/", oncall.group_silence, name="oncall_silence"),
    path("oncall/silences/<int:silence_id>/end/", oncall.silence_end, name="silence_end"),
]
