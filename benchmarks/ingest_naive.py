"""The naive way: Channels' JSON consumer, one ORM save and one ack an event.

    python -m benchmarks.ingest_naive PORT DATABASE

It stores the event and nothing else, and does not even dedupe.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import django
import uvicorn
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["ctxhealth.store", "django.contrib.auth", "django.contrib.contenttypes"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": sys.argv[2],
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA synchronous=FULL;",
            },
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    CTXHEALTH_ALLOW_OLD_SQLITE=True,
)
django.setup()

from channels.db import database_sync_to_async  # noqa: E402
from channels.generic.websocket import AsyncJsonWebsocketConsumer  # noqa: E402
from django.core.management import call_command  # noqa: E402

from ctxhealth.store.models import Event  # noqa: E402


class Naive(AsyncJsonWebsocketConsumer):  # type: ignore[misc]
    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        if content["type"] == "hello":
            await self.send_json({"type": "welcome"})
            return
        for event in content["events"]:
            await self.save(event)
            await self.send(text_data=f'{{"type":"ack","epoch":"e1","upto":{event["seq"]}}}')

    @database_sync_to_async  # type: ignore[untyped-decorator]
    def save(self, event: dict[str, Any]) -> None:
        now = int(time.time() * 1_000)
        Event(type=event["type"], ts=event["ts"], received=now, at=now, body=str(event)).save()


class Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print("ready", flush=True)


if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    config = uvicorn.Config(
        Naive.as_asgi(), port=int(sys.argv[1]), loop="uvloop", ws="websockets-sansio",
        lifespan="off", ws_max_queue=4, ws_per_message_deflate=False, log_level="warning",
    )  # fmt: skip
    Server(config).run()
