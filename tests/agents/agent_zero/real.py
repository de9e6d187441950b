"""An installed Agent Zero tree, copied aside with a folder of its own for its user's data."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ctxhealth.agents.agent_zero import make
from tests.agents.provider import Provider, says

TREE = "CTXHEALTH_AGENT_ZERO"
PYTHON = "CTXHEALTH_AGENT_ZERO_PYTHON"
_DRIVER = Path(__file__).with_name("drive.py")
_LEFT_OUT = ("usr", ".git", "webui", "docs", "logs", "tmp", "__pycache__", "node_modules")
_LINE_S = 180


def answer(text: str) -> str:
    """What a model must say so that Agent Zero takes it for its answer to the user."""
    told = {
        "thoughts": ["I know this."],
        "headline": "Answering",
        "tool_name": "response",
        "tool_args": {"text": text},
    }
    return json.dumps(told)


class Tree:
    """The copy: same code, empty user's data, the plugin dropped in, models on ``provider``.

    ``window`` and ``share`` are the chat model's context length and the history's share of it.
    """

    def __init__(self, folder: Path, provider: Provider, *, window: int, share: float) -> None:
        self.path = folder / "agent-zero"
        source = Path(os.environ[TREE])
        shutil.copytree(source, self.path, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        (self.path / "usr" / "plugins").mkdir(parents=True)
        for part in ("webui", "tmp", "logs"):
            (self.path / part).mkdir(exist_ok=True)
        _read_by_this_python(self.path)
        self._models(provider, window, share)
        memory = self.path / "usr" / "plugins" / "_memory"
        memory.mkdir()
        (memory / ".toggle-0").touch()

    def plug(self, url: str, token: str, **more: Any) -> None:
        """Drop the plugin in, with its settings as its page would store them."""
        plugins = self.path / "usr" / "plugins"
        make(plugins)
        settings = {"enabled": True, "url": url, "token": token, "agent": "a0", "text": "excerpt",
                    "commands": True, **more}  # fmt: skip
        (plugins / "ctxhealth" / "config.json").write_text(json.dumps(settings))

    def _models(self, provider: Provider, window: int, share: float) -> None:
        common = {
            "provider": "other",
            "api_base": provider.url,
            "kwargs": {"a0_retry_delay_seconds": 0.05, "num_retries": 0, "max_retries": 0},
        }
        chat = {**common, "name": "fake-chat", "ctx_length": window, "ctx_history": share,
                "vision": False}  # fmt: skip
        config = {
            "chat_model": chat,
            "utility_model": {**common, "name": "fake-utility", "ctx_length": 128_000},
            "embedding_model": {**common, "name": "fake-embedding"},
        }
        folder = self.path / "usr" / "plugins" / "_model_config"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))


def _read_by_this_python(tree: Path) -> None:
    """An agent written for a later Python: its few type statements as plain assignments."""
    version = subprocess.run(
        [_python(), "-c", "import sys; print(sys.version_info[:2] >= (3, 12))"],
        capture_output=True, text=True, check=True, timeout=30,
    ).stdout  # fmt: skip
    if version.strip() == "True":
        return
    for path in (tree / "helpers").glob("*.py"):
        text = path.read_text("utf-8")
        plain = re.sub(r"^type (\w+) = ", r"\1 = ", text, flags=re.MULTILINE)
        if plain != text:
            path.write_text(plain, "utf-8")


def _python() -> str:
    return os.environ.get(PYTHON) or sys.executable


def _vocabulary() -> str | None:
    """Where litellm keeps the vocabulary that the agent would otherwise download."""
    found = subprocess.run(
        [_python(), "-c", "import litellm, os; print(os.path.dirname(litellm.__file__))"],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ).stdout.strip()  # fmt: skip
    folder = Path(found) / "litellm_core_utils" / "tokenizers"
    return str(folder) if found and folder.is_dir() else None


class Process:
    """The agent in a process of its own. Methods of ``drive.Driver`` by their names."""

    def __init__(self, tree: Tree, log: Path) -> None:
        read, write = os.pipe()
        vocabulary = _vocabulary()
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("CTXHEALTH")},
            "API_KEY_OTHER": "none",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "CTXHEALTH_TEST_FD": str(write),
            **({"TIKTOKEN_CACHE_DIR": vocabulary} if vocabulary else {}),
        }
        self.log = log
        self._out = log.open("wb")
        self._process = subprocess.Popen(
            [_python(), str(_DRIVER)],
            cwd=tree.path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=self._out,
            stderr=subprocess.STDOUT,
            pass_fds=(write,),
        )
        os.close(write)
        self._answers = os.fdopen(read)
        self._read()

    def do(self, name: str, *args: Any) -> Any:
        assert self._process.stdin is not None
        line = json.dumps({"do": name, "args": args}) + "\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        return self._read()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._out.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self) -> Any:
        line = self._answers.readline()
        assert line, f"the agent ended:\n{self.log.read_text(errors='replace')[-3_000:]}"
        told = json.loads(line)
        assert "ok" in told, told
        return told["ok"]


def script_healthy(provider: Provider, words: int = 200) -> None:
    """Answers of a length that fills the history, and summaries that are short."""
    said = " ".join(f"word{number}" for number in range(words))
    provider.script("fake-chat", says(answer(said)))
    provider.script("fake-utility", says("They spoke about words."))
