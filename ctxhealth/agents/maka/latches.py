"""The turn's latch of some versions, and rescues that were never tried: both are inferred.

Such a version takes "nothing to fold right now" for a failed summarizer: it compacts no more in
this turn, not even after an overflow. Of a turn that failed nothing of this is on the wire. What
shows is an overflow that no summarizer call followed although whole pairs stood in the turn.
"""

from __future__ import annotations

from ctxhealth.agents.maka import folds
from ctxhealth.agents.maka.known import Turn
from ctxhealth.agents.maka.telling import Telling
from ctxhealth.agents.maka.words import INFERRED

_STRUCTURAL = "no_safe_completed_span"
_WHY = (
    "Inferred: the request overflowed and no summarizer call followed, although the turn held "
    "{pairs} completed calls. This version of Maka compacts no more in a turn once it found "
    "nothing to fold, and gives no reason for it on the wire."
)
_AFTER_FAILURE = (
    "Inferred: a compaction of this turn failed, then a request overflowed and no summarizer call "
    "followed. This version of Maka compacts no more in a turn after that."
)
_FOLDABLE_PAIRS = 2


def before_request(to: Telling, turn: Turn, ts: int) -> None:
    """The next request goes out: an overflow before it had no rescue."""
    if turn.overflowed:
        _no_rescue(to, turn, ts)


def at_end(to: Telling, turn: Turn, ts: int, status: str) -> None:
    if turn.overflowed and status == "failed":
        _no_rescue(to, turn, ts)


def decided(to: Telling, turn: Turn, ts: int, attempt: str) -> None:
    """A turn that ended well says that nothing could be folded: until here it was latched."""
    if to.epoch.latches:
        _set(to, turn, ts, attempt, "structural", _STRUCTURAL)
        to.tell("latch.cleared", ts, latch=f"latch-{turn.id}", how="turn_end")
        to.known.latch = None


def _no_rescue(to: Telling, turn: Turn, ts: int) -> None:
    turn.overflowed = False
    before = to.known.load
    if not to.epoch.latches:
        _found_nothing(to, turn, ts, "reactive")
        return
    failed = next((attempt for attempt, error, _ in turn.folds if error), None)
    if to.known.latch is None:
        if failed is None and turn.pairs >= _FOLDABLE_PAIRS:
            first = _found_nothing(to, turn, ts, "proactive")
            _set(to, turn, ts, first, "structural", _WHY.format(pairs=turn.pairs))
        elif failed is not None:
            _set(to, turn, ts, failed, "summarizer", _AFTER_FAILURE)
    if to.known.latch is None:
        _found_nothing(to, turn, ts, "reactive")
        return
    folds.without_calls(
        to, turn, ts, "skipped", reason="latched", trigger="reactive", before=before,
        scope="prompt", detail=INFERRED,
    )  # fmt: skip


def _found_nothing(to: Telling, turn: Turn, ts: int, trigger: str) -> str:
    return folds.without_calls(
        to, turn, ts, "failedOpen", reason=_STRUCTURAL, trigger=trigger,
        before=to.known.load, scope="prompt", detail=INFERRED,
    )  # fmt: skip


def _set(to: Telling, turn: Turn, ts: int, attempt: str, kind: str, reason: str) -> None:
    latch = to.known.latch = f"latch-{turn.id}"
    to.tell(
        "latch.set", ts, latch=latch, scope="turn", kind=kind, attempt=attempt, reason=reason,
        tokens=to.known.load, bypass=["manual"], release={"turn_end": True},
    )  # fmt: skip
