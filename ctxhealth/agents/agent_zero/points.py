"""The extension points of Agent Zero that the plugin listens at, and the file for each.

Agent Zero finds an extension by the folder its file lies in and orders all files of one point by
their names; two of the same name shadow each other, so every name carries the plugin's.
"""

from __future__ import annotations

from dataclasses import dataclass

_AGENT = "_functions/agent/Agent"
_CONTEXT = "_functions/agent/AgentContext"

_SYNC = '''"""Made by ctxhealth: tells helpers/watch.py of {point}."""

from helpers.extension import Extension


class Ctxhealth(Extension):
    def execute(self, **kwargs):
        try:
            from usr.plugins.ctxhealth.helpers import watch
        except Exception:
            return
        watch.seen("{name}", self.agent, kwargs)
'''
_WAITED = '''"""Made by ctxhealth: a safe point of the agent's loop, see helpers/safe_points.py."""

from helpers.extension import Extension


class Ctxhealth(Extension):
    async def execute(self, **kwargs):
        try:
            from usr.plugins.ctxhealth.helpers import watch
        except Exception:
            return
        await watch.passed("{name}", self.agent)
'''


@dataclass(frozen=True)
class Point:
    """``name`` is what watch.py knows it by. ``waited``: a command may be carried out there."""

    name: str
    folder: str
    order: int
    waited: bool = False

    @property
    def path(self) -> str:
        return f"extensions/python/{self.folder}/_{self.order:02}_ctxhealth.py"

    @property
    def text(self) -> str:
        return (_WAITED if self.waited else _SYNC).format(point=self.folder, name=self.name)


POINTS = (
    Point("agent_init", "agent_init", 95),
    Point("started", "_functions/__main__/init_a0/end", 95),
    Point("context_made", f"{_CONTEXT}/__init__/end", 95),
    Point("context_removed", f"{_CONTEXT}/remove/end", 95),
    Point("context_reset", f"{_CONTEXT}/reset/end", 95),
    Point("process_killed", f"{_CONTEXT}/kill_process/end", 95),
    Point("chain_begun", f"{_CONTEXT}/_process_chain/start", 5),
    Point("chain_ended", f"{_CONTEXT}/_process_chain/end", 95),
    Point("monologue_begun", f"{_AGENT}/monologue/start", 5),
    Point("monologue_ended", f"{_AGENT}/monologue/end", 95),
    Point("message_added", f"{_AGENT}/hist_add_message/end", 95),
    Point("warning_added", f"{_AGENT}/hist_add_warning/end", 95),
    Point("prompt_begun", f"{_AGENT}/prepare_prompt/start", 5),
    Point("prompt_ended", f"{_AGENT}/prepare_prompt/end", 95),
    Point("wait_ended", "message_loop_prompts_before", 91),
    Point("chat_call_begun", "chat_model_call_before", 95),
    Point("chat_call_ended", f"{_AGENT}/call_chat_model/end", 95),
    Point("chat_call_ended", f"{_AGENT}/call_chat_model_turn/end", 95),
    Point("utility_begun", f"{_AGENT}/call_utility_model/start", 5),
    Point("utility_ended", f"{_AGENT}/call_utility_model/end", 95),
    Point("error_raised", f"{_AGENT}/handle_exception/end", 5),
    Point("error_handled", f"{_AGENT}/handle_exception/end", 99),
    Point("before_wait", "message_loop_prompts_before", 89, waited=True),
    Point("iteration_ended", "message_loop_end", 9, waited=True),
)


def shims() -> dict[str, str]:
    """Path below the plugin's folder -> text, for every extension file."""
    return {point.path: point.text for point in POINTS}
