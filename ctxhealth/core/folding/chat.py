"""What the agent declares about its chat."""

from __future__ import annotations

from ctxhealth.core.folding.context import Context
from ctxhealth.core.limits import forget_model, settle_limits
from ctxhealth.core.parts import TEXT, Facts
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import clip
from ctxhealth.wire.events import ChatClosed, ChatFacts

_PLAIN = (
    "window", "max_input", "max_output", "reserve", "history_limit", "bytes_limit", "tokenizer",
)  # fmt: skip


def on_chat_facts(state: ChatState, event: ChatFacts, context: Context) -> None:
    """``chat.opened`` and ``chat.updated``: a named field replaces, an absent one stays."""
    facts = state.facts
    state.link.closed = False
    if event.title is not None:
        facts.title = clip(event.title, TEXT)
    if event.parent is not None:
        facts.parent = context.changes.parent = event.parent
    if event.labels and "runtime" in event.labels:
        facts.runtime = event.labels["runtime"]
    _take_model(state, event)
    for name in _PLAIN:
        value = getattr(event, name)
        if value is not None:
            setattr(facts, name, value)
    _take_trigger(facts, event)
    _take_utility(facts, event)
    _take_fixed_part(state, event)
    settle_limits(state, context.rules)
    context.changes.facts = True


def on_chat_closed(state: ChatState, event: ChatClosed, context: Context) -> None:
    """The chat ended: nobody waits any more and nothing can hang."""
    state.link.closed = True
    state.turns.open = False
    state.turns.waiting_since = state.turns.waiting_turn = None
    state.requests.open.clear()
    state.recovery = None
    context.changes.facts = True


def take_reply_model(state: ChatState, model: str, context: Context) -> None:
    """A reply names its model: used only where the agent never declared one."""
    facts = state.facts
    if facts.model is not None and not facts.model_from_reply:
        return
    if facts.model is not None:
        forget_model(state)
    facts.model, facts.model_from_reply = model, True
    settle_limits(state, context.rules)


def _take_model(state: ChatState, event: ChatFacts) -> None:
    facts = state.facts
    if event.provider is not None:
        facts.provider = event.provider
    if event.model is None:
        return
    if facts.model is not None and event.model != facts.model:
        forget_model(state)
        if event.window is None and not facts.model_from_reply:
            # The old model's declared sizes say nothing about the new one.
            facts.window = facts.max_input = facts.max_output = None
    facts.model, facts.model_from_reply = event.model, False


def _take_trigger(facts: Facts, event: ChatFacts) -> None:
    trigger = event.trigger
    if trigger is None:
        return
    facts.trigger_declared = trigger.tokens is not None or trigger.ratio is not None
    facts.trigger_tokens, facts.trigger_ratio = trigger.tokens, trigger.ratio
    facts.trigger_inclusive, facts.trigger_scope = trigger.inclusive, trigger.scope


def _take_utility(facts: Facts, event: ChatFacts) -> None:
    utility = event.utility
    if utility is None:
        return
    facts.utility_model = utility.model or facts.utility_model
    facts.utility_provider = utility.provider or facts.utility_provider
    if utility.window is not None:
        facts.utility_window = utility.window


def _take_fixed_part(state: ChatState, event: ChatFacts) -> None:
    if event.system is not None:
        state.history.system = event.system
    if event.tools is not None:
        state.history.tools = event.tools
