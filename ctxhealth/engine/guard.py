"""The guard before a request is sent: does it fit, and what happens when it does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

UNFIT = "CONTEXT_UNFIT"


@dataclass(frozen=True)
class GuardResult:
    """Whether a prompt fits. ``corrected`` is the count after calibration, ``limit`` the budget.

    ``limit`` is ``None`` where no window is known; then nothing can be refused. ``compacted`` says
    that a forced compaction ran first, ``compaction_error`` how that failed.
    """

    ok: bool
    limit: int | None
    corrected: int
    code: str | None = None
    compacted: bool = False
    compaction_error: str | None = None

    @property
    def message(self) -> str:
        """Say why a request is refused, with both numbers and what to do; blank where it fits."""
        if self.ok or self.limit is None:
            return ""
        return (
            f"{UNFIT}: the request needs {self.corrected:,} tokens, {self.limit:,} are usable. "
            "Send a shorter message, remove tools, start a new turn or use a larger window."
        )


class ContextUnfit(RuntimeError):
    """A request that was refused before any provider call."""

    def __init__(self, result: GuardResult) -> None:
        super().__init__(result.message)
        self.result = result
        self.code = UNFIT


def crosses(count: int, trigger: int, inclusive: bool) -> bool:
    """Whether a count starts compaction: a trigger met exactly only where it is inclusive."""
    return count >= trigger if inclusive else count > trigger


def corrected_count(count: int, calibration: float | None) -> int:
    """Return a local count as the provider would see it.

    ``calibration`` is local / provider. A counter that sees too much is left alone: it errs on the
    safe side. Raises ValueError where it is not above 0.
    """
    if calibration is None:
        return count
    if calibration <= 0:
        raise ValueError(f"calibration: must be above 0, not {calibration}")
    # Rounding first: 117,961 / 0.6 is 196,601.67, but 60 / 0.6 must not become 101.
    return math.ceil(round(count / calibration, 6)) if calibration < 1 else count


def fits(
    count: int,
    window: int | None,
    reserve: int = 0,
    cap: int | None = None,
    calibration: float | None = None,
) -> GuardResult:
    """Return whether ``count`` tokens leave room for the answer.

    ``reserve`` is the configured output reserve, ``cap`` the output cap declared on the request;
    the larger of the two is kept free. Raises ValueError for a negative size.
    """
    sizes = {"count": count, "window": window or 0, "reserve": reserve, "cap": cap or 0}
    for name, value in sizes.items():
        if value < 0:
            raise ValueError(f"{name}: must be 0 or more, not {value}")
    corrected = corrected_count(count, calibration)
    if window is None:
        return GuardResult(True, None, corrected)
    limit = max(0, window - max(reserve, cap or 0))
    ok = corrected <= limit
    return GuardResult(ok, limit, corrected, None if ok else UNFIT)


@dataclass(frozen=True)
class Guard:
    """The policy around ``fits``: one forced compaction, one recount, then a refusal."""

    window: int | None
    reserve: int = 0
    calibration: float | None = None

    def check(self, count: int, cap: int | None = None) -> GuardResult:
        return fits(count, self.window, self.reserve, cap, self.calibration)

    def before_send(
        self,
        count: Callable[[], int],
        compact: Callable[[int], object],
        cap: int | None = None,
    ) -> GuardResult:
        """Return whether the request may go out; call this before every provider call.

        ``count`` counts the request as it stands, ``compact`` forces a compaction towards a limit
        in the counter's own units. A compaction that raises leaves the request as it was; the
        recount decides.
        """
        first = self.check(count(), cap)
        if first.ok or first.limit is None:
            return first
        error = self._compact(compact, first.limit)
        again = self.check(count(), cap)
        return GuardResult(again.ok, again.limit, again.corrected, again.code, True, error)

    def _compact(self, compact: Callable[[int], object], limit: int) -> str | None:
        factor = min(1.0, self.calibration or 1.0)
        try:
            compact(int(limit * factor))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None
