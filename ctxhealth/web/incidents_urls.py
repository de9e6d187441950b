"""Addresses of incidents and reviews."""

from __future__ import annotations

from django.urls import path

from ctxhealth.web.views import incident_files, incident_words, incidents, reviews

_ONE = "incidents/<int:incident_id>"

urlpatterns = [
    path("incidents/", incidents.incident_list, name="incidents"),
    path(f"{_ONE}/", incidents.incident, name="incident"),
    path(f"{_ONE}/moment/", incidents.incident_moment, name="incident_moment"),
    path(f"{_ONE}/table/", incidents.incident_table, name="incident_table"),
    path(f"{_ONE}/notes/", incident_words.note_add, name="note_add"),
    path(f"{_ONE}/notes/<int:note_id>/", incident_words.note_edit, name="note_edit"),
    path(f"{_ONE}/verdict/", incident_words.verdict, name="incident_verdict"),
    path(f"{_ONE}/owner/", incident_words.own, name="incident_owner"),
    path(f"{_ONE}/report.zip", incident_files.report, name="incident_report"),
    path(f"{_ONE}/bundle.json", incident_files.bundle, name="incident_bundle"),
    path("chats/<int:chat_id>/incident/", incidents.chat_incident, name="chat_incident"),
    path("chats/<int:chat_id>/review/", reviews.chat_review, name="chat_review"),
    path("chats/<int:chat_id>/review/moment/", reviews.chat_moment, name="chat_moment"),
    path("chats/<int:chat_id>/review/table/", reviews.chat_table, name="chat_review_table"),
]
