"""The page for those on call: who takes what, what is silent, what the next shift is told."""

from __future__ import annotations

from django.test import Client

from ctxhealth.store import queries, writes
from tests.live.world import Agent, now
from tests.store.test_oncall import press, the_cause, troubled
from tests.web.markup import read


def text_of(client: Client, path: str = "/oncall/") -> str:
    return " ".join(read(client.get(path).content.decode()).text.split())


def test_what_is_open_stands_with_its_cause_and_its_chats(robot: Agent, viewer: Client) -> None:
    troubled(robot, "c1", "c2")
    text = text_of(viewer)
    for said in ("1 cause", "2 chats", "Chat c1", "Chat c2", "nobody has taken it"):
        assert said in text, said
    assert "Take it" not in text


def test_a_quiet_shift_says_so(db: None, viewer: Client) -> None:
    text = text_of(viewer)
    for said in (
        "Nothing is open.",
        "Nobody pressed anything",
        "None closed",
        "Nobody has written",
    ):
        assert said in text, said


def test_taking_handing_over_and_letting_go(robot: Agent, operator: Client) -> None:
    troubled(robot, "c1")
    writes.user_ensure(username="eve", role="operator")
    group = the_cause().group.id
    for name, said in (("a-operator", "taken by a-operator"), ("eve", "taken by eve"),
                       ("", "nobody has taken it")):  # fmt: skip
        operator.post(f"/oncall/causes/{group}/owner/", {"to": name})
        assert said in text_of(operator)
    operator.post(f"/oncall/causes/{group}/owner/", {"to": "nobody <b>"})
    assert "There is nobody called nobody <b>." in text_of(operator)


def test_a_silence_says_until_when_by_whom_and_why(robot: Agent, operator: Client) -> None:
    troubled(robot, "c1")
    group = the_cause().group.id
    operator.post(f"/oncall/causes/{group}/silence/", {"minutes": "30", "reason": "<i>known"})
    text = text_of(operator)
    assert "silent until" in text and "<i>known (a-operator)" in text
    silence = the_cause().silence
    assert silence is not None
    operator.post(f"/oncall/silences/{silence.id}/end/")
    assert "silent until" not in text_of(operator)


def test_a_silent_cause_of_several_chats_says_so_on_the_board(
    robot: Agent, operator: Client
) -> None:
    troubled(robot, "c1", "c2")
    group = the_cause().group.id
    assert "silent until" not in text_of(operator, "/")
    operator.post(f"/oncall/causes/{group}/silence/", {"minutes": "30", "reason": "known"})
    text = text_of(operator, "/")
    assert "silent until" in text and "Chat c1" in text


def test_a_silence_without_a_reason_is_said_on_the_page(robot: Agent, operator: Client) -> None:
    troubled(robot, "c1")
    group = the_cause().group.id
    operator.post(f"/oncall/causes/{group}/silence/", {"minutes": "30", "reason": " "})
    assert "A reason is needed." in text_of(operator)
    operator.post(f"/oncall/causes/{group}/silence/", {"minutes": "x", "reason": "y"})
    assert "1 to 1,440 minutes" in text_of(operator)


def test_a_note_is_shown_as_markdown_and_nothing_in_it_runs(operator: Client) -> None:
    operator.post("/oncall/handover/", {"text": "## Night\n\n- *calm*\n\n<script>x</script>"})
    html = operator.get("/oncall/").content.decode()
    assert "<em>calm</em>" in html and "<script>x" not in html
    operator.post("/oncall/handover/", {"text": "second", "seen": str(_seen())})
    assert "Earlier versions (1)" in text_of(operator)


def _seen() -> int:
    return queries.handover_notes()[0].id


def test_what_was_typed_is_kept_where_somebody_else_was_faster(operator: Client) -> None:
    operator.post("/oncall/handover/", {"text": "first"})
    seen = _seen()
    operator.post("/oncall/handover/", {"text": "second", "seen": str(seen)})
    answer = operator.post("/oncall/handover/", {"text": "my own words", "seen": str(seen)})
    assert answer.status_code == 409
    text = read(answer.content.decode()).text
    assert "saved the note meanwhile" in text and "my own words" in text
    assert queries.handover_notes()[0].text == "second"


def test_a_draft_tells_the_shift(robot: Agent, operator: Client) -> None:
    troubled(robot, "c1")
    pk = robot.chat("c2 [x](y)", 199_500, window=200_000, reserve=8_000)
    press(robot, pk, "c2 [x](y)", "k1", "refused", "busy")
    text = text_of(operator, "/oncall/?draft=1")
    for said in ("## Open", "Owner: nobody yet.", "## Pressed, and still in trouble",
                 "Force fallback on", "refused: busy", r"Chat c2 \[x\](y)"):  # fmt: skip
        assert said in text, said


def test_viewers_look_and_write_nothing(robot: Agent, viewer: Client) -> None:
    troubled(robot, "c1")
    group = the_cause().group.id
    assert viewer.post("/oncall/handover/", {"text": "x"}).status_code == 403
    viewer.post(f"/oncall/causes/{group}/silence/", {"minutes": "30", "reason": "x"})
    viewer.post(f"/oncall/causes/{group}/owner/", {"to": "a-viewer"})
    cause = the_cause()
    assert cause.silence is None and cause.group.owner == ""


def test_what_was_pressed_stands_with_its_result_and_whether_it_helped(
    robot: Agent, viewer: Client
) -> None:
    pk = robot.chat("c1", 199_500, window=200_000, reserve=8_000)
    press(robot, pk, "c1", "k1", "refused", "busy")
    text = text_of(viewer)
    for said in ("1 press", "1 chat still in trouble", "ada", "Refused", "busy", "in trouble"):
        assert said in text, said


def test_the_length_of_the_shift_is_chosen_in_the_address(robot: Agent, viewer: Client) -> None:
    html = viewer.get("/oncall/?hours=24").content.decode()
    assert 'href="?hours=24" aria-current="true"' in html
    assert 'href="?hours=8" aria-current="true"' in viewer.get("/oncall/?hours=x").content.decode()


def test_the_part_that_changes_is_looked_at_alone(robot: Agent, viewer: Client) -> None:
    troubled(robot, "c1")
    html = viewer.get("/oncall/now/", headers={"HX-Request": "true"}).content.decode()
    assert "Chat c1" in html and "<html" not in html and "handover" not in html


def test_a_closed_incident_stands_with_its_cause_and_how_long_it_lasted(
    robot: Agent, viewer: Client
) -> None:
    troubled(robot, "c1")
    for _ in range(4):
        robot.turn("c1", 20_000)
    assert queries.shift(since=now() - 3_600_000).closed
    text = text_of(viewer)
    assert "Nothing is open. What opened in this shift is closed again." in text
    assert "none yet" in text
