"""What the database is and how much is in it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.db.models import Count, Sum

from ctxhealth.store.models import Agent, Chat, ServerInfo


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreCounts:
    """``events`` is the sum of the chats' logs; ``since`` (ms) when this database was made."""

    chats: int
    agents: int
    events: int
    since: int | None
    boots: int


def database_words() -> str:
    """Name and version, as a person says them."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("SELECT sqlite_version()")
            return f"SQLite {cursor.fetchone()[0]}"
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return f"PostgreSQL {str(cursor.fetchone()[0]).split()[0]}"


def store_counts() -> StoreCounts:
    info = ServerInfo.objects.first()
    stored = Chat.objects.aggregate(chats=Count("id"), events=Sum("chat_seq", default=0))
    return StoreCounts(
        chats=stored["chats"],
        agents=Agent.objects.count(),
        events=stored["events"],
        since=info.created_at if info else None,
        boots=info.boots if info else 0,
    )
