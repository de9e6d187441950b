"""docs/agents/python.md is true: its programs run, on doubles and on the published packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.provider import Provider, says
from tests.client.server import TOKEN, Server

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "agents" / "python.md").read_text("utf-8")
PROGRAMS = {
    section.partition("\n")[0]: found.group(1)
    for section in TEXT.split("\n## ")
    if (found := re.search(r"```python\n(.*?)```", section, re.DOTALL))
}
STUBS = {
    "openai": """
        from tests.agents.wrappers.doubles import SHAPES, Method, Stream, openai, shaped
        def OpenAI():
            chunks = [shaped(chunk) for chunk in SHAPES["chat_stream"]]
            whole = Method(shaped(SHAPES["chat"]), Stream(chunks))
            return openai(whole, Method(shaped(SHAPES["response"])))
        """,
    "anthropic": """
        from contextlib import contextmanager
        from types import SimpleNamespace
        from tests.agents.wrappers.doubles import SHAPES, Method, anthropic, shaped
        @contextmanager
        def stream(**given):
            message = shaped(SHAPES["message"])
            yield SimpleNamespace(current_message_snapshot=message, get_final_message=dict)
        def Anthropic():
            return anthropic(Method(shaped(SHAPES["message"])), stream=stream)
        """,
    "langchain_openai": """
        from types import SimpleNamespace
        def ChatOpenAI(model):
            return SimpleNamespace(model_name=model)
        """,
    "langchain/__init__": "",
    "langchain/agents/__init__": """
        from types import SimpleNamespace
        def create_agent(model, tools, middleware):
            [watch] = middleware
            answer = SimpleNamespace(type="ai", content="There.", usage_metadata=None)
            def invoke(state, config):
                watch.before_agent(state, None)
                request = SimpleNamespace(model=model, messages=state["messages"])
                watch.wrap_model_call(request, lambda asked: SimpleNamespace(result=[answer]))
                watch.after_agent({"messages": [answer]}, None)
            return SimpleNamespace(invoke=invoke)
        """,
    "langchain/agents/middleware": "class AgentMiddleware: pass",
}


def run(program: str, command: str, folder: Path, server: Server, **more: str) -> None:
    environment = {
        **os.environ, "CTXHEALTH_URL": server.url, "CTXHEALTH_TOKEN": TOKEN, **more,
    }  # fmt: skip
    done = subprocess.run(
        [command, "-c", program], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def check(title: str, server: Server) -> None:
    """What each program must have reported."""
    replied = server.events("model.replied")
    wanted = {
        "OpenAI": 3,
        "Anthropic": 2,
        "LangChain and LangGraph": 1,
        "Several chats, one client": 2,
    }
    assert len(replied) == wanted.get(title, 0)
    assert server.events("chat.opened")
    if title == "Several chats, one client":
        assert [event["chat"] for event in replied] == ["chat-1", "chat-2"]


def test_every_section_with_a_program_is_here() -> None:
    assert len(PROGRAMS) == TEXT.count("```python") == 5


@pytest.mark.parametrize("title", list(PROGRAMS))
def test_every_program_runs_on_doubles(title: str, server: Server, tmp_path: Path) -> None:
    from textwrap import dedent

    for name, source in STUBS.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))
    run(
        PROGRAMS[title], sys.executable, tmp_path, server,
        PYTHONPATH=os.pathsep.join((str(tmp_path), str(ROOT))),
    )  # fmt: skip
    check(title, server)


@pytest.mark.agents
@pytest.mark.timeout(600)
@pytest.mark.parametrize("title", list(PROGRAMS))
def test_every_program_runs_on_the_published_packages(
    title: str, python: Any, server: Server, tmp_path: Path
) -> None:
    with Provider(responses=True) as provider:
        for model in ("gpt-5", "claude-sonnet-5-5"):
            provider.script(model, says("in parser.py"))
        run(
            PROGRAMS[title], str(python), tmp_path, server, PYTHONPATH=str(ROOT),
            OPENAI_BASE_URL=provider.url, OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k",
            ANTHROPIC_BASE_URL=provider.url.removesuffix("/v1"),
        )  # fmt: skip
    check(title, server)
