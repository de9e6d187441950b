"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from ctxhealth.web import imports_urls, incidents_urls, oncall_urls
from ctxhealth.web.views import (
    about,
    actions,
    agents,
    audit,
    auth,
    board,
    chat,
    people,
    retention,
    thresholds,
    tokens,
    windows,
)

urlpatterns = [
    path("", board.board, name="board"),
    path("chats/<int:chat_id>/", chat.chat, name="chat"),
    path("chats/<int:chat_id>/series.json", chat.chat_series, name="chat_series"),
    path("chats/<int:chat_id>/timeline/", chat.chat_timeline, name="chat_timeline"),
    path("chats/<int:chat_id>/attempts/<int:first_seq>/", chat.chat_attempt, name="chat_attempt"),
    path("chats/<int:chat_id>/events/", chat.chat_events, name="chat_events"),
    path("chats/<int:chat_id>/events/<int:chat_seq>/", chat.chat_event, name="chat_event"),
    path("chats/<int:chat_id>/act/<slug:kind>/", actions.chat_action, name="chat_action"),
    path("commands/<slug:command_id>/", actions.command, name="command"),
    path("commands/<slug:command_id>/cancel/", actions.command_cancel, name="command_cancel"),
    *incidents_urls.urlpatterns,
    *imports_urls.urlpatterns,
    *oncall_urls.urlpatterns,
    path("agents/", agents.agents, name="agents"),
    path("agents/summarizers/", agents.summarizers, name="summarizers"),
    path("agents/<int:agent_id>/", agents.agent, name="agent"),
    path("audit/", audit.audit, name="audit"),
    path("settings/", thresholds.settings_home, name="settings"),
    path("settings/tokens/", tokens.tokens, name="tokens"),
    path("settings/tokens/<int:token_id>/rotate/", tokens.token_rotate, name="token_rotate"),
    path("settings/tokens/<int:token_id>/revoke/", tokens.token_revoke, name="token_revoke"),
    path("settings/people/", people.people, name="people"),
    path("settings/people/<int:user_id>/role/", people.person_role, name="person_role"),
    path("settings/people/<int:user_id>/disable/", people.person_disable, name="person_disable"),
    path("settings/people/<int:user_id>/link/", people.person_link, name="person_link"),
    path("settings/thresholds/", thresholds.thresholds, name="thresholds"),
    path(
        "settings/thresholds/tried/<slug:trial_id>/",
        thresholds.threshold_trial,
        name="threshold_trial",
    ),
    path("settings/thresholds/<slug:name>/", thresholds.threshold_set, name="threshold_set"),
    path("settings/windows/", windows.windows, name="windows"),
    path("settings/windows/<int:override_id>/end/", windows.window_end, name="window_end"),
    path("settings/windows/table/", windows.table_put, name="table_put"),
    path("settings/retention/", retention.retention, name="retention"),
    path("settings/about/", about.about, name="about"),
    path("login/", auth.login_page, name="login"),
    path("login/once/<str:token>/", auth.login_once, name="login_once"),
    path("logout/", auth.logout_page, name="logout"),
]
