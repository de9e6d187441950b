"""Messages whose text came without a count: which they are, and how the count is kept.

The count stands in the stored body, so that a replay folds the same. An agent that sends such an
event again is compared without it: a second count may be an estimate where the first was exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from ctxhealth.store.intake import Intake
from ctxhealth.tokens import Count
from ctxhealth.wire.events import ChatOpened, ChatUpdated, CountedMessage, MessageAdded
from ctxhealth.wire.parts import Counted

_ENDING = re.compile(r',"counted":\{"tokens":\d+,"exact":(?:true|false)\}\}$')
_FACTS = (ChatOpened, ChatUpdated)
# Kinds whose text is all that is sent: beside a call or a picture it is only a part.
_WHOLE = frozenset({"text", "tool_result", "summary", "reasoning"})
MODELS = 4_096


def uncounted(intakes: Sequence[Intake], models: dict[str, str]) -> list[int]:
    """Places of the messages to count. ``models`` learns by the way which chat speaks to whom."""
    found: list[int] = []
    for place, intake in enumerate(intakes):
        event = intake.event
        if type(event) is MessageAdded:
            if event.tokens is None and event.text and event.kind in _WHOLE:
                found.append(place)
        elif type(event) is ChatOpened or type(event) is ChatUpdated:
            _learn(event, models)
    return found


def _learn(event: object, models: dict[str, str]) -> None:
    assert isinstance(event, _FACTS)
    if event.model is not None and event.chat is not None:
        if len(models) >= MODELS:
            del models[next(iter(models))]
        models[event.chat] = event.model


def texts_of(
    intakes: Sequence[Intake], places: Iterable[int], models: dict[str, str]
) -> list[tuple[str, str | None]]:
    """(text, model) at each place."""
    events = [intakes[place].event for place in places]
    return [
        (event.text or "", models.get(event.chat or ""))
        for event in events
        if isinstance(event, MessageAdded)
    ]


def put_counts(intakes: list[Intake], places: Sequence[int], counts: Sequence[Count]) -> None:
    """Replace each intake at ``places`` by the same one with its count."""
    for place, count in zip(places, counts, strict=True):
        intakes[place] = _with_count(intakes[place], count)


def _with_count(intake: Intake, count: Count) -> Intake:
    counted = Counted(count.tokens, count.exact)
    event = CountedMessage(**msgspec.structs.asdict(intake.event), counted=counted)
    ending = msgspec.json.encode(counted).decode()
    return Intake(intake.seq, event, intake.kind, f'{intake.body[:-1]},"counted":{ending}}}')


def same_content(body: str, other: str) -> bool:
    """Whether two bodies say the same, whatever was counted in them."""
    return body == other or _ENDING.sub("}", body) == _ENDING.sub("}", other)
