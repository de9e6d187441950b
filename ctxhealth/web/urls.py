"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from ctxhealth.web.views import actions, agents, auth, board, chat, settings

urlpatterns = [
    path("", board.board, name="board"),
    path("chats/<int:chat_id>/", chat.chat, name="chat"),
    path("chats/<int:chat_id>/series.json", chat.chat_series, name="chat_series"),
    path("chats/<int:chat_id>/timeline/", chat.chat_timeline, name="chat_timeline"),
    path(
        "chats/<int:chat_id>/attempts/<int:first_seq>/", chat.chat_attempt, name="chat_attempt"
    ),
    path("chats/<int:chat_id>/events/", chat.chat_events, name="chat_events"),
    path("chats/<int:chat_id>/events/<int:chat_seq>/", chat.chat_event, name="chat_event"),
    path("chats/<int:chat_id>/act/<slug:kind>/", actions.chat_action, name="chat_action"),
    path("commands/<slug:command_id>/", actions.command, name="command"),
    path("commands/<slug:command_id>/cancel/", actions.command_cancel, name="command_cancel"),
    path("agents/", agents.agents, name="agents"),
    path("audit/", settings.audit, name="audit"),
    path("settings/tokens/", settings.tokens, name="tokens"),
    path("settings/tokens/<int:token_id>/revoke/", settings.token_revoke, name="token_revoke"),
    path("login/", auth.login_page, name="login"),
    path("login/once/<str:token>/", auth.login_once, name="login_once"),
    path("logout/", auth.logout_page, name="logout"),
]
