"""Levels 4 and 5 of the fallback: bulks become fewer, then the oldest go."""

from __future__ import annotations

import math

from .draft import Draft, Group, Tally, Unit
from .history import Bulk
from .shorten import CHARS_PER_TOKEN, merged_text

#: The one line that counts what was evicted; a later fallback adds to it.
EVICTED = "fallback:evicted"
#: Each round leaves about a third of the bulks; more rounds than this would find nothing.
_MOST_ROUNDS = 20


def merge_bulks(draft: Draft) -> None:
    """Level 4: neighbouring bulks in threes, and again while that helps."""
    with draft.step(4, "bulk_merge") as tally:
        for _ in range(_MOST_ROUNDS):
            if draft.met or not _merge_round(draft, tally):
                return


def _merge_round(draft: Draft, tally: Tally) -> bool:
    """Merge every run of neighbours once; True where that made anything smaller."""
    kept: list[Bulk | Unit] = []
    run: list[Bulk] = []
    changed = False
    for entry in [*draft.bulks, None]:
        mergeable = isinstance(entry, Bulk) and entry.id != EVICTED
        if isinstance(entry, Bulk) and mergeable:
            run.append(entry)
        if not mergeable or len(run) == draft.rules.merge:
            merged = _merge(draft, tally, run)
            changed = changed or merged != run
            kept.extend(merged)
            run = []
        if entry is not None and not mergeable:
            kept.append(entry)
    draft.bulks = kept
    return changed


def _merge(draft: Draft, tally: Tally, run: list[Bulk]) -> list[Bulk]:
    """Return the run as one bulk, or as it is where that would not shrink it."""
    if not run or draft.met:
        return run
    merged = _merged(draft, run)
    before = sum(bulk.tokens for bulk in run)
    if merged.tokens >= before or merged.text == run[0].text is not None:
        return run
    draft.total -= before - merged.tokens
    draft.exact = draft.exact and merged.text is not None
    tally.touched.extend(bulk.id for bulk in run)
    tally.made.append(merged.id)
    return [merged]


def _merged(draft: Draft, run: list[Bulk]) -> Bulk:
    rules = draft.rules
    records = sum(bulk.records for bulk in run)
    text = merged_text(run, rules.extract_chars, rules.head_share)
    if text is None:
        size = math.ceil(rules.extract_chars / CHARS_PER_TOKEN)
    else:
        chars = sum(len(bulk.text or "") for bulk in run)
        size = draft.sizer.size(text, sum(bulk.tokens for bulk in run), chars)
    return Bulk(run[0].id, size, text, records)


def evict_oldest(draft: Draft) -> None:
    """Level 5: the oldest bulks go, one line counts them; last what no extract could shrink."""
    if draft.met:
        return
    line = next((b for b in draft.bulks if isinstance(b, Bulk) and b.id == EVICTED), None)
    old: list[Bulk | Group] = [b for b in draft.bulks if isinstance(b, Bulk) and b is not line]
    old += [draft.leftover] if draft.leftover else []
    count, after, new = _how_many(draft, old, line)
    if new is not None and after < draft.total:
        _evict(draft, old[:count], line, new)


def _how_many(
    draft: Draft, old: list[Bulk | Group], line: Bulk | None
) -> tuple[int, int, Bulk | None]:
    """Return how many must go, the total after, and the new line: the fewest that are enough."""
    total = draft.total - (line.tokens if line else 0)
    records = line.records if line else 0
    new: Bulk | None = None
    for count, entry in enumerate(old, start=1):
        total -= entry.tokens
        records += entry.records if isinstance(entry, Bulk) else len(entry.units)
        new = _line(draft, records)
        if total + new.tokens <= draft.target:
            return count, total + new.tokens, new
    return len(old), total + (new.tokens if new else 0), new


def _line(draft: Draft, records: int) -> Bulk:
    text = f"[{records:,} earlier parts of this chat were removed by fallback compaction]"
    return Bulk(EVICTED, draft.sizer.size(text, 0, 0), text, records)


def _evict(draft: Draft, gone: list[Bulk | Group], line: Bulk | None, new: Bulk) -> None:
    with draft.step(5, "evict") as tally:
        for entry in gone:
            if isinstance(entry, Group):
                draft.remove(entry)
                tally.touched.extend(cell.item.id for cell in entry.cells)
            else:
                draft.total -= entry.tokens
                tally.touched.append(entry.id)
        draft.total += new.tokens - (line.tokens if line else 0)
        draft.evicted = new.records - (line.records if line else 0)
        out = {id(entry) for entry in gone} | {id(line)}
        draft.bulks = [new, *(entry for entry in draft.bulks if id(entry) not in out)]
        tally.made.append(new.id)
