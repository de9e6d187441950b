"""``ctxhealth bridge maka`` at the terminal, and its page in the documentation."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ctxhealth.agents.maka.host import GRANTS, TESTED
from ctxhealth.agents.maka.registration import find
from ctxhealth.cli import main
from tests.agents.maka import scenes
from tests.agents.maka.host import CREDENTIAL, FakeHost
from tests.agents.maka.test_following import told
from tests.agents.server import House

RUN = "import sys; from ctxhealth.cli import main; sys.exit(main())"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "agents" / "maka.md"


def bridge(*options: str) -> int:
    return main(["bridge", "maka", "--token", "ctxh_x", *options])


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAKA_RUNTIME_HOST", "MAKA_RUNTIME_HOST_CREDENTIAL", "CTXHEALTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


class TestWrongInput:
    def test_without_a_credential(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert bridge() == 2
        assert "No credential for the runtime host" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("host", "said"),
        [
            ("http://127.0.0.1:1", "is not ws://host:port/runtime-host"),
            ("ws://h/runtime-host?token=1", "takes no query"),
            ("unix:", "needs the path of the socket"),
            ("ws://[::1/runtime-host", "invalid IPv6 URL"),
            ("ws://127.0.0.1:99999/runtime-host", "port out of range"),
        ],
    )
    def test_with_an_address_that_is_none(
        self, capsys: pytest.CaptureFixture[str], host: str, said: str
    ) -> None:
        assert bridge("--host", host) == 2
        assert capsys.readouterr().err.startswith("--host: ")
        bridge("--host", host)
        assert said in capsys.readouterr().err

    def test_with_a_credential_file_that_is_not_there(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert bridge("--credential-file", "nowhere") == 2
        assert "--credential-file: " in capsys.readouterr().err

    def test_with_an_epoch_of_which_nothing_is_known(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MAKA_RUNTIME_HOST_CREDENTIAL", CREDENTIAL)
        assert bridge("--untested-epoch", "7", "--state", str(tmp_path)) == 2
        assert "nothing is known of epoch 7" in capsys.readouterr().err

    @pytest.mark.parametrize("days", ["nan", "inf", "-1", "1e300", "a week"])
    def test_with_days_that_are_none(self, capsys: pytest.CaptureFixture[str], days: str) -> None:
        with pytest.raises(SystemExit) as ended:
            bridge(f"--since-days={days}")
        assert ended.value.code == 2
        assert "--since-days" in capsys.readouterr().err

    def test_with_a_credential_that_no_header_can_carry(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        (tmp_path / "two").write_text("maka_rh_a\nmaka_rh_b\n")
        assert bridge("--credential-file", str(tmp_path / "two")) == 2
        assert "--credential-file: holds more than one word" in capsys.readouterr().err

    def test_with_a_server_s_port_that_is_none(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MAKA_RUNTIME_HOST_CREDENTIAL", CREDENTIAL)
        assert bridge("--url", "http://127.0.0.1:99999") == 2
        assert "--url: Port out of range" in capsys.readouterr().err


class TestTheLocalHost:
    def test_is_the_newest_one_registered(self, tmp_path: Path) -> None:
        for at, (name, mode) in enumerate([("a", "ephemeral"), ("b", "service")]):
            folder = tmp_path / name
            folder.mkdir()
            file = folder / "registration.json"
            file.write_text(json.dumps({"endpoint": f"/run/{name}.sock", "lifecycleMode": mode}))
            os.utime(file, (at + 1, at + 1))
        (tmp_path / "c").mkdir()
        (tmp_path / "c" / "registration.json").write_text("torn{")
        assert find(tmp_path) == ("unix:/run/b.sock", False)

    def test_is_not_there(self, tmp_path: Path) -> None:
        assert find(tmp_path) is None


class TestThePage:
    def test_issues_exactly_the_rights_that_the_bridge_needs(self) -> None:
        text = PAGE.read_text("utf-8")
        assert tuple(re.findall(r"--grant ([a-z.]+)", text)) == GRANTS

    def test_names_the_tested_epochs(self) -> None:
        text = PAGE.read_text("utf-8")
        assert all(f"epoch {number}" in text for number in TESTED)


@pytest.mark.e2e
def test_as_a_process_it_follows_and_ends_with_the_terminal_s_interrupt(
    house: House, tmp_path: Path
) -> None:
    credential = tmp_path / "credential"
    credential.write_text(f"{CREDENTIAL}\n")
    with FakeHost() as host:
        session = host.session("process-1")
        scenes.healthy(session)
        process = subprocess.Popen(
            [
                sys.executable, "-c", RUN, "bridge", "maka", "--host", host.url,
                "--credential-file", str(credential), "--url", house.url,
                "--state", str(tmp_path / "state"),
            ],
            env={**os.environ, "CTXHEALTH_TOKEN": house.agent_token}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        told(house, session, "turn.ended", 2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out.startswith("Agent: maka on ") and "Traceback" not in err
