"""Every finding there is, in the order of the states they give."""

from __future__ import annotations

from ctxhealth.core.findings import (
    fitting,
    intake,
    latched,
    looping,
    metering,
    over,
    pairs,
    saturated,
    silent,
    stalls,
    time,
    turns,
    watch,
)
from ctxhealth.core.findings.definition import Definition

DEFINITIONS: tuple[Definition, ...] = (
    *pairs.DEFINITIONS,
    *turns.DEFINITIONS,
    *time.DEFINITIONS,
    *silent.DEFINITIONS,
    *latched.DEFINITIONS,
    *stalls.DEFINITIONS,
    *looping.DEFINITIONS,
    *fitting.DEFINITIONS,
    *over.DEFINITIONS,
    *saturated.DEFINITIONS,
    *metering.DEFINITIONS,
    *intake.DEFINITIONS,
    *watch.DEFINITIONS,
)
CATALOGUE: dict[str, Definition] = {definition.code: definition for definition in DEFINITIONS}
