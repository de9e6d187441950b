"""``ctxhealth compact``: the engine over a history in a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.cli import main
from ctxhealth.client.histories import snapshot_of
from ctxhealth.engine import (
    Bulk,
    History,
    Item,
    Topic,
    apply_plan,
    backup_document,
    history_from_backup,
    plan_fallback,
)
from tests.readers.session import Session

TEXT = "The build went through and the tests are green again. "


def turn(name: str, size: int = 400) -> Topic:
    text = (TEXT * size)[: 4 * size]
    return Topic(
        name,
        (
            Item(f"{name}.u", "user", "text", 20, "Please look at the build."),
            Item(f"{name}.c", "assistant", "tool_call", 10, "read", calls=(f"{name}.k",)),
            Item(f"{name}.r", "tool", "tool_result", size, text, "read", answers=(f"{name}.k",)),
            Item(f"{name}.a", "assistant", "text", size, text),
        ),
    )


HISTORY = History(
    system=900,
    tools=400,
    bulks=(Bulk("b1", 30, "Earlier: the build was red."),),
    topics=tuple(turn(f"t{number}") for number in range(1, 10)),
    current=turn("now", 60),
)
BEFORE = HISTORY.total()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "history.json", HISTORY.to_dict())


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), "utf-8")
    return path


def read(path: Path) -> History:
    return History.from_dict(json.loads(path.read_text("utf-8")))


def compact(*arguments: object) -> int:
    return main(["compact", *[str(argument) for argument in arguments]])


def stream(path: Path, *events: dict[str, Any]) -> Path:
    lines = [json.dumps({"ts": at, "chat": "c", **event}) for at, event in enumerate(events)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


class TestThePlan:
    def test_is_printed_level_by_level_and_nothing_is_written(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        plan = plan_fallback(HISTORY, target=2_000)
        assert compact(file, "--target", 2_000) == 0
        said = capsys.readouterr().out
        assert f"{BEFORE:,} history tokens in 1 bulk, 9 topics and the current one" in said
        for step in plan.steps:
            assert f"{step.before:,} -> " in said and f"level {step.level}" in said
        assert plan.sentence in said
        assert f"Kept verbatim: {len(plan.kept_verbatim)} messages." in said
        assert f"No longer sent: {len(plan.folded)} messages" in said
        assert "Lossy" in said
        assert os.listdir(file.parent) == ["history.json"]

    def test_as_json_it_is_the_engine_s_own(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert compact(file, "--target", 2_000, "--json") == 0
        said = json.loads(capsys.readouterr().out)
        plan = json.loads(json.dumps(plan_fallback(HISTORY, target=2_000).to_dict()))
        assert said == {"chat": None, **plan, "written": None, "backup": None}

    def test_in_the_prompt_s_scope_counts_what_stands_beside(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert compact(file, "--target", 3_300, "--scope", "prompt", "--json") == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["scope"], said["before"]) == ("prompt", BEFORE + 1_300)
        assert said["after"] <= 3_300

    def test_of_a_history_within_the_target_says_so(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert compact(file, "--target", BEFORE) == 0
        assert "are within the target" in capsys.readouterr().out

    def test_that_cannot_reach_the_target_ends_with_4(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert compact(file, "--target", 10) == 4
        assert "still above the target of 10" in capsys.readouterr().out

    def test_keeps_as_many_turns_as_asked_for(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for turns, kept in ((1, set()), (3, {"t8.a", "t9.a"})):
            assert compact(file, "--target", 100, "--keep-turns", turns, "--json") == 4
            folded = set(json.loads(capsys.readouterr().out)["folded"])
            assert {"t7.a", "t8.a", "t9.a"} - folded == kept

    def test_of_a_history_in_many_lines_is_the_same(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pretty = tmp_path / "pretty.json"
        pretty.write_text(json.dumps(HISTORY.to_dict(), indent=2), "utf-8")
        assert compact(pretty, "--target", 2_000) == 0
        assert f"{BEFORE:,} history tokens" in capsys.readouterr().out

    def test_of_a_backup_is_that_of_its_history(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        saved = written(tmp_path / "backup.json", backup_document(HISTORY, "cmd", 7))
        assert compact(saved, "--target", 2_000, "--json") == 0
        assert json.loads(capsys.readouterr().out)["revision"] == HISTORY.revision


class TestTheOutput:
    def test_is_the_history_after_the_plan_and_the_input_stays(self, file: Path) -> None:
        before, output = file.read_bytes(), file.with_name("after.json")
        assert compact(file, "--target", 2_000, "--output", output, "-q") == 0
        assert read(output) == apply_plan(HISTORY, plan_fallback(HISTORY, target=2_000))
        assert read(output).total() <= 2_000
        assert file.read_bytes() == before

    def test_is_for_its_owner_alone(self, file: Path) -> None:
        output = file.with_name("after.json")
        compact(file, "--target", 2_000, "--output", output, "-q")
        assert output.stat().st_mode & 0o077 == 0

    @pytest.mark.parametrize("name", ["history.json", "other.json"])
    def test_is_never_written_over_a_file_unasked(
        self, file: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        output = file.with_name(name)
        output.write_bytes(file.read_bytes())
        assert compact(file, "--target", 2_000, "--output", output) == 2
        assert "exists" in capsys.readouterr().err
        assert output.read_bytes() == file.read_bytes()

    def test_over_the_input_keeps_a_backup_each_time(self, file: Path) -> None:
        first = file.read_bytes()
        assert compact(file, "--target", 4_000, "-o", file, "--force", "-q") == 0
        second = file.read_bytes()
        assert compact(file, "--target", 2_000, "-o", file, "--force", "-q") == 0
        assert file.with_name("history.json.backup-1").read_bytes() == first
        assert file.with_name("history.json.backup-2").read_bytes() == second
        assert read(file).total() <= 2_000

    def test_over_the_input_with_nothing_to_do_touches_nothing(self, file: Path) -> None:
        before = file.read_bytes()
        assert compact(file, "--target", BEFORE, "-o", file, "--force", "-q") == 0
        assert (file.read_bytes(), os.listdir(file.parent)) == (before, ["history.json"])

    def test_of_a_backup_leaves_the_backup_readable(self, tmp_path: Path) -> None:
        saved = written(tmp_path / "backup.json", backup_document(HISTORY, "cmd", 7))
        assert compact(saved, "--target", 2_000, "-o", saved, "--force", "-q") == 0
        kept = json.loads(saved.with_name("backup.json.backup-1").read_text("utf-8"))
        assert history_from_backup(kept) == HISTORY

    def test_into_no_folder_is_refused_before_anything_is_read(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        output = file.parent / "gone" / "after.json"
        assert compact(file, "--target", 2_000, "-o", output) == 2
        assert "there is no folder" in capsys.readouterr().err

    def test_below_the_target_is_written_too_where_it_is_the_best_there_is(
        self, file: Path
    ) -> None:
        output = file.with_name("after.json")
        assert compact(file, "--target", 10, "-o", output, "-q") == 4
        assert 10 < read(output).total() < BEFORE


OPENED: dict[str, Any] = {"type": "chat.opened", "history_limit": 2_500, "model": "m"}


class TestAStream:
    def test_of_snapshots_is_planned_by_sizes_against_the_chat_s_own_limit(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        snapshot = {"type": "history.snapshot", "revision": "r1", **snapshot_of(HISTORY)}
        file = stream(tmp_path / "s.jsonl", OPENED, snapshot)
        output = tmp_path / "after.json"
        assert compact(file, "--output", output) == 0
        said = capsys.readouterr().out
        assert f"chat c: {BEFORE:,} history tokens in 1 bulk, 9 topics" in said
        assert "target 2,000" in said and "sizes after are estimates" in said
        assert read(output).total() <= 2_000

    def message(self, name: str, role: str, kind: str = "text", **more: Any) -> dict[str, Any]:
        return {"type": "message.added", "id": name, "role": role, "kind": kind, **more}

    def told(self) -> list[dict[str, Any]]:
        events = []
        for number in range(8):
            events.append(self.message(f"u{number}", "user", tokens=20))
            events.append(self.message(f"a{number}", "assistant", tokens=900))
        return events

    def test_of_messages_alone_makes_a_topic_of_each_turn(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = stream(tmp_path / "s.jsonl", OPENED, *self.told())
        assert compact(file) == 0
        assert "7,360 history tokens in 0 bulks, 7 topics" in capsys.readouterr().out

    def test_what_a_compaction_removed_is_out_and_its_summary_is_a_bulk(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gone = [event["id"] for event in self.told()[:8]]
        finished = {
            "type": "compaction.finished", "attempt": "x", "reported": "ok", "scope": "history",
            "removed": gone, "added": [{"id": "s1", "kind": "summary", "tokens": 50}],
        }  # fmt: skip
        file = stream(tmp_path / "s.jsonl", OPENED, *self.told(), finished)
        assert compact(file) == 0
        assert "3,730 history tokens in 1 bulk, 3 topics" in capsys.readouterr().out

    def test_that_does_not_say_what_was_removed_cannot_be_planned(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        finished = {
            "type": "compaction.finished", "attempt": "x", "reported": "ok",
            "scope": "history", "before": 7_360, "after": 3_000,
        }  # fmt: skip
        file = stream(tmp_path / "s.jsonl", OPENED, *self.told(), finished)
        assert compact(file) == 2
        assert "does not say which messages are still in" in capsys.readouterr().err

    def test_with_an_item_of_unknown_size_cannot_be_planned(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = stream(tmp_path / "s.jsonl", OPENED, self.message("u1", "user"))
        assert compact(file) == 2
        assert "The size of item u1 is not known" in capsys.readouterr().err

    def test_of_several_chats_needs_one_of_them(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = {**self.message("o1", "user", tokens=4_000), "chat": "other"}
        file = stream(tmp_path / "s.jsonl", OPENED, *self.told(), other)
        assert compact(file) == 2
        assert "--chat: c, other" in capsys.readouterr().err
        assert compact(file, "--chat", "nobody") == 2
        assert "no chat nobody" in capsys.readouterr().err
        assert compact(file, "--chat", "c") == 0

    def test_without_a_limit_needs_a_target(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = stream(tmp_path / "s.jsonl", *self.told())
        assert compact(file) == 2
        assert "Give --target" in capsys.readouterr().err
        assert compact(file, "--target", 3_000) == 0

    def test_of_a_session_file_is_taken_too(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        session = Session()
        for number in range(3):
            session.prompt("Look at the build." * 40)
            session.answer(f"m{number}", 4_000, "It is green." * 200)
        file = tmp_path / "session.jsonl"
        file.write_bytes(session.bytes())
        assert compact(file, "--target", 900, "--scope", "history") == 0
        assert "2 topics and the current one" in capsys.readouterr().out


class TestABadFile:
    @pytest.mark.parametrize(
        ("content", "why"),
        [
            ("not json", "neither a history nor a stream"),
            ("[1]", "is no history"),
            ('{"bulks": [{"id": "b"}]}', "bulks[0].tokens: must be an integer"),
            ('{"topics": 3}', "topics: must be a list"),
            ('{"format": "ctxhealth-history", "version": 9}', "this release reads 1"),
            ("", "neither a history nor a stream"),
            ('{"type": "chat.opened"}', "has a ts in milliseconds"),
        ],
    )
    def test_is_told_by_its_field_and_reason(
        self, tmp_path: Path, content: str, why: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "bad.json"
        file.write_text(content, "utf-8")
        assert compact(file) == 2
        said = capsys.readouterr()
        assert why in said.err and "Traceback" not in said.err
        assert said.out == ""

    def test_that_is_missing_is_named(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert compact(tmp_path / "gone.json", "--target", 5) == 2
        assert "gone.json cannot be read" in capsys.readouterr().err

    def test_an_altered_backup_is_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = backup_document(HISTORY, "cmd", 7)
        document["revision"] = "0" * 64
        assert compact(written(tmp_path / "b.json", document), "--target", 5) == 2
        assert "was altered" in capsys.readouterr().err

    def test_without_sizes_beside_the_prompt_s_scope_is_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = written(tmp_path / "h.json", History(topics=HISTORY.topics).to_dict())
        assert compact(file, "--target", 2_000, "--scope", "prompt") == 2
        assert "system: size unknown" in capsys.readouterr().err

    @pytest.mark.parametrize("target", ["-1", "many"])
    def test_no_number_for_a_target_is_refused(self, file: Path, target: str) -> None:
        with pytest.raises(SystemExit) as ended:
            compact(file, f"--target={target}")
        assert ended.value.code == 2


def test_from_a_checkout_it_is_the_same(file: Path) -> None:
    run = subprocess.run(
        [sys.executable, "manage.py", "compact", str(file), "--target", "2000"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert plan_fallback(HISTORY, target=2_000).sentence in run.stdout
