from __future__ import annotations

from ctxhealth.live.shown import Shown


def test_only_what_differs_is_sent_again() -> None:
    shown = Shown()
    assert shown.differing({"row-1": "<a>", "row-2": "<b>"}) == ["<a>", "<b>"]
    assert shown.differing({"row-1": "<a>", "row-2": "<c>"}) == ["<c>"]
    assert shown.differing({"row-1": "<a>"}) == []


def test_a_forgotten_region_is_sent_anew() -> None:
    shown = Shown()
    shown.differing({"row-1": "<a>", "row-2": "<b>"})
    shown.keep({"row-2"})
    assert "row-1" not in shown
    assert shown.differing({"row-1": "<a>"}) == ["<a>"]
