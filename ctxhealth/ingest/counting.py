"""Counting what an agent sent as text and did not count itself, before it is stored.

The socket counts on a thread of its own, the HTTP intake on the one it has; both with a limit on
how long an event waits for its count.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ctxhealth.ingest.gate import Gate
from ctxhealth.ingest.link import Link
from ctxhealth.store import queries
from ctxhealth.store.counted import put_counts, texts_of, uncounted
from ctxhealth.store.intake import Intake, StreamHandle
from ctxhealth.tokens import count_each

SECONDS = 1.0
_LOG = logging.getLogger(__name__)


async def count_in(gate: Gate, link: Link, intakes: list[Intake], places: Sequence[int]) -> None:
    """Put a count into the intakes at ``places``."""
    missing = _without_model(intakes, places, link.models)
    if missing:
        try:
            link.models.update(await gate.read(queries.chat_models, link.stream.agent, missing))
        except Exception as error:
            # Without its model a text is estimated; a count is worth no connection.
            _LOG.info("the models of %s cannot be read: %s", link.stream.agent_name, error)
    counts = await gate.counting.all(texts_of(intakes, places, link.models))
    put_counts(intakes, places, counts)


def count_here(stream: StreamHandle, intakes: list[Intake]) -> None:
    """The same on this thread, for one request over HTTP."""
    models: dict[str, str] = {}
    places = uncounted(intakes, models)
    if places:
        missing = _without_model(intakes, places, models)
        models = {**queries.chat_models(stream.agent, missing), **models}
        put_counts(intakes, places, count_each(texts_of(intakes, places, models), SECONDS, []))


def _without_model(
    intakes: Sequence[Intake], places: Sequence[int], models: dict[str, str]
) -> list[str]:
    names = {intakes[place].event.chat for place in places}
    return [name for name in names if name is not None and name not in models]
