"""What did not arrive whole, as a chat's own findings tell it."""

from __future__ import annotations

from .story import Story


def test_events_that_came_again_with_other_content_are_counted_and_named() -> None:
    story = Story().opened()
    for seq in (3, 7):
        story.say("note", level="warning", code="conflict", text=f"event {seq} came again")
    assert story.severity("conflict") == "info"
    assert story.finding("conflict").sentence == (
        "2 events came again with other content, last: event 7 came again."
    )
    assert story.row.incident is None
