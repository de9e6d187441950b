"""Write the golden streams: what a demo agent sends, with a clock of its own.

``python -m tests.wire.make_golden`` from the project's folder. A change here is a change of what
agents send: read the difference before committing it.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxhealth.client import Chat
from ctxhealth.client.bodies import body as event_body
from ctxhealth.client.texts import TextPolicy
from ctxhealth.demo import agent_zero, healthy
from ctxhealth.demo.body import Body, Spec
from ctxhealth.demo.loop import Loop

FOLDER = Path(__file__).parent / "golden"
DOCUMENT = Path(__file__).parents[2] / "docs" / "streams.md"
START = 1_790_000_000_000
STEP = 700


class Recorder:
    """Stands where a Reporter stands and keeps the events, numbered, on a clock of its own."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def report(self, type: str, chat: str | None, ts: int | None, fields: dict[str, Any]) -> bool:
        at = START + STEP * len(self.lines)
        raw = event_body(type, at, chat, fields, TextPolicy("excerpt", None))
        seq = len(self.lines) + 1
        self.lines.append(b'{"seq":%d,' % seq + raw[1:])
        return True

    def on(self, kind: str, **options: Any) -> Callable[[Any], Any]:
        return lambda handler: handler


class Enough(Exception):
    """The stream is long enough."""


class OneCompaction(healthy.Healthy):
    """A healthy chat, seen until the turn after its first compaction is answered."""

    def rest(self, seconds: float) -> bool:
        compacted = any(b'"compaction.finished"' in line for line in self.recorder.lines)
        if compacted and self.body.turn is None and self.answered_since_compaction:
            raise Enough
        return False

    @property
    def recorder(self) -> Recorder:
        found = self.reporter
        assert isinstance(found, Recorder)
        return found

    @property
    def answered_since_compaction(self) -> bool:
        lines = self.recorder.lines
        at = max(i for i, line in enumerate(lines) if b'"compaction.finished"' in line)
        return any(b'"turn.ended"' in line for line in lines[at:])


class Incident(agent_zero.EmptyUtility):
    def rest(self, seconds: float) -> bool:
        if self.body.outcome == "stopped":
            raise Enough
        return False


def record(loop: type[Loop], spec: Spec) -> list[bytes]:
    recorder: Any = Recorder()
    chat = Chat(recorder, spec.id)
    chat.opened(**spec.facts())
    with tempfile.TemporaryDirectory() as folder:
        life = loop(recorder, Body(chat, spec), Path(folder), 1.0)
        with contextlib.suppress(Enough):
            life.run()
    lines: list[bytes] = recorder.lines
    return lines


def streams() -> dict[str, list[bytes]]:
    """The golden streams by file name."""
    return {
        "healthy.jsonl": record(OneCompaction, healthy.spec("coder-a-1", healthy.TITLES[0])),
        "agent-zero.jsonl": record(Incident, agent_zero.spec("nightly", "Nightly migration")),
    }


def described(lines: list[bytes]) -> list[str]:
    """One sentence a line: what the event says, in the words of the protocol."""
    return [f"| {at} | {_say(json.loads(line))} |" for at, line in enumerate(lines, 1)]


def _say(event: dict[str, Any]) -> str:
    kind = event["type"]
    sentence = _SENTENCES[kind](event)
    return f"`{kind}` | {sentence}"


def _n(value: Any) -> str:
    return "unknown" if value is None else f"{value:,}"


def _parts(event: dict[str, Any]) -> str:
    sizes = [f"{len(event.get(part, []))} {part}" for part in ("bulks", "topics")]
    current = event.get("current", {}).get("tokens")
    return (
        f"Structure: {' and '.join(sizes)}, current topic {_n(current)}, "
        f"history {_n(event.get('history'))} tokens."
    )


def _finished(event: dict[str, Any]) -> str:
    summarizer = event.get("summarizer", {})
    said = f"The agent calls it {event['reported']!r}: {_n(event.get('before'))} to "
    said += f"{_n(event.get('after'))} {event['scope']} tokens"
    error = summarizer.get("error")
    calls = summarizer.get("calls")
    return said + f", {_n(calls)} summarizer call{f', error {error}' if error else ''}."


def _replied(event: dict[str, Any]) -> str:
    usage, content = event["usage"], event["content"]
    what = f"{content['text_chars']} characters and {content.get('tool_calls', 0)} tool calls"
    who = "The summarizer" if event.get("purpose") == "utility" else "The model"
    return f"{who} was sent {_n(usage['input'])} tokens and answered {what}."


_SENTENCES: dict[str, Callable[[dict[str, Any]], str]] = {
    "chat.opened": lambda e: (
        f"{e['title']!r} on {e['model']}: window {_n(e['window'])}, system {_n(e['system'])}, "
        f"tools {_n(e['tools'])}, "
        f"trigger {_n(e['trigger'].get('tokens'))} in the {e['trigger']['scope']}."
    ),
    "turn.started": lambda e: f"A turn begins ({e['kind']}): from here the user waits.",
    "turn.ended": lambda e: f"The turn ends: {e['outcome']}.",
    "message.added": lambda e: (
        f"{e['role']} {e['kind']} of {_n(e['tokens'])} tokens"
        f"{' (' + e['unusable'] + ', so unusable)' if 'unusable' in e else ''}."
    ),
    "history.snapshot": _parts,
    "request.sent": lambda e: (
        f"A {e.get('purpose', 'chat')} request of {_n(e['local'])} tokens by the agent's count."
    ),
    "model.replied": _replied,
    "compaction.started": lambda e: (
        f"A {e['trigger']} attempt begins at {_n(e['before'])} {e['scope']} tokens."
    ),
    "compaction.finished": _finished,
    "agent.stopped": lambda e: (
        f"The agent gives up after {e['count']} of {e['limit']}: {e['reason']}."
    ),
}
_ABOUT = {
    "healthy.jsonl": "A healthy chat: turns with tool calls, one compaction, real relief",
    "agent-zero.jsonl": "The Agent Zero incident: an empty summarizer, stalls, a stop",
}


def document(streams: dict[str, list[bytes]]) -> str:
    """``docs/streams.md``: both streams, a row an event."""
    out = [
        "# Two whole event streams, line by line",
        "",
        "Made by `python -m tests.wire.make_golden` from the demo's agents; the files stand in",
        "`tests/wire/golden/`. They are what an agent sends after `welcome`, one event a line.",
    ]
    for name, lines in streams.items():
        out += ["", f"## {_ABOUT[name]} (`{name}`)", "", "| seq | type | what it says |"]
        out += ["|---|---|---|", *described(lines)]
    return "\n".join(out) + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    made = streams()
    DOCUMENT.write_text(document(made), encoding="utf-8")
    for name, lines in made.items():
        (FOLDER / name).write_bytes(b"\n".join(lines) + b"\n")
        kinds = [json.loads(line)["type"] for line in lines]
        print(name, len(lines), "events", sum(map(len, lines)), "bytes", dict.fromkeys(kinds))


if __name__ == "__main__":
    main()
