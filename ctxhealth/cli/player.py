"""A stream of events played into a running server, through the SDK, as its agent would."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

from ctxhealth.cli.console import Console
from ctxhealth.cli.errors import REFUSED, CannotSend
from ctxhealth.cli.pages import Pages
from ctxhealth.cli.sender import refusal, server_of
from ctxhealth.cli.streams import Line
from ctxhealth.client import Reporter
from ctxhealth.core.wording import plural

_CONNECT_TRIES = 30
_UNDER_WAY = 5_000
_OWN = ("seq", "type", "ts", "chat")


def play(lines: list[Line], options: Namespace, console: Console) -> int:
    """Send every event of the stream. Raises CannotSend where the server is not to be had."""
    url, token = server_of(options)
    sent = [line for line in lines if not line["type"].startswith("server.")]
    if not any(line.get("chat") for line in sent):
        raise CannotSend(f"{options.file} holds no event of a chat.")
    names = _names(sent, options)
    caps = {"commands": [], "fallback": "none", "read_only": _is_read_only(lines)}
    with Reporter(url, token, agent=options.agent, runtime="replay", capabilities=caps) as reporter:
        _connect(reporter, url)
        _send(sent, names, reporter, options.speed)
        if not reporter.flush(60.0):
            raise CannotSend(f"{url} did not take everything in time.", REFUSED)
    console.say(f"Played {plural(len(sent), 'event')}.")
    pages = Pages(url, token, options.agent)
    for name in names.values():
        console.say(pages.of(name))
    return 0


def _connect(reporter: Reporter, url: str) -> None:
    for _ in range(_CONNECT_TRIES):
        if reporter.wait_connected(0.5):
            return
        error = reporter.status()["last_error"] or ""
        said = refusal(error)
        if said is not None:
            raise CannotSend(said, REFUSED)
    raise CannotSend(f"No connection to {url} ({error or 'no answer'}).", REFUSED)


def _is_read_only(lines: list[Line]) -> bool:
    return any(line["type"] == "server.connected" and line.get("read_only") for line in lines)


def _names(lines: list[Line], options: Namespace) -> dict[str, str]:
    """Chat ids of the stream -> ids on the server; new ones each time, so that nothing mixes."""
    chats = list(dict.fromkeys(str(line["chat"]) for line in lines if line.get("chat")))
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now))
    whole = options.chat or f"{options.file.stem} {stamp}.{int(now * 1000) % 1000:03d}"
    if len(chats) == 1:
        return {chats[0]: whole}
    return {chat: f"{whole} {chat}" for chat in chats}


def _send(
    lines: list[Line], names: dict[str, str], reporter: Reporter, speed: float | None
) -> None:
    """As fast as the server takes it, or ``speed`` times as fast as it happened."""
    now = int(time.time() * 1000)
    shift = now - (lines[-1]["ts"] if speed is None else lines[0]["ts"])
    previous = lines[0]["ts"]
    for line in lines:
        if speed is not None and line["ts"] > previous:
            time.sleep((line["ts"] - previous) / 1000 / speed)
            shift = int(time.time() * 1000) - line["ts"]
        previous = line["ts"]
        while not reporter.wait_below(_UNDER_WAY, 1.0):
            pass
        fields = {key: value for key, value in line.items() if key not in _OWN}
        _move_times(fields, shift)
        if isinstance(fields.get("parent"), str):
            fields["parent"] = names.get(fields["parent"], fields["parent"])
        chat = names.get(line["chat"]) if line.get("chat") else None
        reporter.event(line["type"], chat=chat, ts=line["ts"] + shift, **fields)


# Moments within events, besides the event's own.
_MOMENTS: tuple[tuple[str, str], ...] = (("release", "until"), ("holder", "since"))


def _move_times(fields: dict[str, Any], shift: int) -> None:
    for part, name in _MOMENTS:
        nested = fields.get(part)
        if isinstance(nested, dict) and isinstance(nested.get(name), int):
            fields[part] = {**nested, name: nested[name] + shift}
