"""What is remembered of one session between two looks and two runs, as JSON can hold it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

VERSION = 1
_ENDED_TURNS = 64
_BOUNDARIES = 64
_TURN_SIZES = 200


@dataclass
class Held:
    """A reply whose content is not known yet: Maka writes it down a moment later."""

    request: str
    at: int
    fields: dict[str, Any]
    calls: int = 0
    chars: int = 0


@dataclass
class Fold:
    """A compaction that has begun: its summarizer calls so far. Sizes in tokens."""

    attempt: str
    trigger: str
    phase: str
    before: int | None
    calls: int | None = 0
    input: int | None = None
    output: int | None = None
    error: str | None = None
    detail: str | None = None
    model: str | None = None
    provider: str | None = None
    window: int | None = None


@dataclass
class Turn:
    """``bare``: begun without a message, as a compaction that somebody asked for.

    ``told``: ``turn.started`` was sent. ``folds``: (attempt, error, stage) of those that ended.
    ``overflowed``: its last request did, and nothing was tried since. ``untraced``: it is too
    long for the host to tell its requests.
    """

    id: str
    run: str | None = None
    bare: bool = True
    told: bool = False
    waits: bool = False
    spoke: bool = False
    overflowed: bool = False
    untraced: bool = False
    requests: int = 0
    pairs: int = 0
    attempts: list[str] = field(default_factory=list)
    folds: list[list[str | None]] = field(default_factory=list)
    held: Held | None = None
    fold: Fold | None = None


@dataclass
class Known:
    """``cursor``: the last transcript message taken. ``saving``: by how much less than the whole
    history is sent since the last compaction, in Maka's estimate. ``sizes``: characters by turn.
    """

    id: str
    cursor: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    opened: bool = False
    closed: bool = False
    load: int | None = None
    saving: int = 0
    latch: str | None = None
    turn: Turn | None = None
    ended: list[str] = field(default_factory=list)
    boundaries: list[str] = field(default_factory=list)
    sizes: list[list[Any]] = field(default_factory=list)
    turns_before: int = 0
    answered_at: int = 0
    composed_at: int = 0
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def end(self, turn: str) -> None:
        self.turn = None
        self.ended = [*self.ended, turn][-_ENDED_TURNS:]

    def meet(self, boundary: str) -> bool:
        """Whether this boundary of a compaction is new; it is known from now on."""
        if boundary in self.boundaries:
            return False
        self.boundaries = [*self.boundaries, boundary][-_BOUNDARIES:]
        return True

    def add_size(self, turn: str, chars: int) -> None:
        if self.sizes and self.sizes[-1][0] == turn:
            self.sizes[-1][1] += chars
            return
        self.sizes.append([turn, chars])
        if len(self.sizes) > _TURN_SIZES:
            del self.sizes[0]
            self.turns_before += 1

    def saved(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Known:
        """Raises ValueError for what another version kept."""
        if state.get("version") != VERSION:
            raise ValueError(f"state of version {state.get('version')}")
        fields = {key: value for key, value in state.items() if key != "version"}
        if fields.get("turn"):
            fields["turn"] = _turn(fields["turn"])
        return cls(**fields)


def _turn(state: dict[str, Any]) -> Turn:
    held, fold = state.get("held"), state.get("fold")
    return Turn(**{
        **state, "held": Held(**held) if held else None, "fold": Fold(**fold) if fold else None,
    })  # fmt: skip
