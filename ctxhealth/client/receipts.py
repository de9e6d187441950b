"""What a finished command must leave in the log, where its handler did not say it itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .context import CommandContext

if TYPE_CHECKING:
    from .reporter import Reporter


def complete(reporter: Reporter, context: CommandContext, fields: dict[str, Any]) -> None:
    """A fallback ends with ``compaction.finished``, a cleared latch with ``latch.cleared``."""
    if context.chat is None:
        return
    track = reporter._station.journal.tracks.of(context.chat)
    if context.kind == "compact_fallback" and track.ended == context.ended_before:
        _finished(reporter, context, fields)
    if context.kind == "clear_latch" and context.id not in track.cleared_by:
        _cleared(reporter, context)


def _finished(reporter: Reporter, context: CommandContext, fields: dict[str, Any]) -> None:
    reporter.event(
        "compaction.finished",
        chat=context.chat,
        attempt=context.id,
        reported="fell_back",
        trigger="forced",
        before=fields.get("before"),
        after=fields.get("after"),
        backup=fields.get("backup"),
        lossy=True,
    )


def _cleared(reporter: Reporter, context: CommandContext) -> None:
    latch = context.args.get("latch")
    if latch is not None:
        reporter.event(
            "latch.cleared", chat=context.chat, latch=latch, how="operator", command=context.id
        )
