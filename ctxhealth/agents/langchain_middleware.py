"""LangChain and LangGraph agents, reported: ``create_agent(..., middleware=[middleware(chat)])``.

``middleware`` for agents made with ``langchain.agents.create_agent``; ``callback_handler`` for
older versions, plain chains and graphs. LangChain is imported when one of them is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any
from uuid import UUID

from ctxhealth.agents.following import read
from ctxhealth.agents.langchain_messages import parts, reply_of
from ctxhealth.agents.observed import (
    Call,
    ChatSource,
    Gather,
    Observer,
    Reply,
    Sent,
    end_turn,
    whole,
)
from ctxhealth.client import Chat, Reporter

_CAPS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
_NAMES = ("model_name", "model", "model_id")


def middleware(chat: ChatSource | Reporter, **options: Any) -> Any:
    """A middleware that reports model calls, turns and messages of an agent.

    ``chat``: a handle; a function that gives one; or a reporter, for a chat per LangGraph thread
    (``thread_id``), each with the facts among ``options`` (window, history_limit, ...). Other
    options: messages, count; see ``Observer``. ``mistakes`` of the result counts what went wrong
    in the reporting. Raises ImportError without ``langchain`` 1.0 or newer.
    """
    base: Any = import_module("langchain.agents.middleware").AgentMiddleware
    observer = _observer(chat, options)

    class ContextHealthMiddleware(base):  # type: ignore[misc]
        """Reports; changes neither request nor state."""

        def __init__(self) -> None:
            super().__init__()
            self._turns: dict[str, str] = {}

        @property
        def mistakes(self) -> int:
            return observer.mistakes

        def before_agent(self, state: Any, runtime: Any) -> None:
            observer.quietly(_turn_started, observer, self._turns)

        async def abefore_agent(self, state: Any, runtime: Any) -> None:
            self.before_agent(state, runtime)

        def after_agent(self, state: Any, runtime: Any) -> None:
            observer.quietly(_turn_ended, observer, self._turns, state)

        async def aafter_agent(self, state: Any, runtime: Any) -> None:
            self.after_agent(state, runtime)

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            call = observer.begin(RequestDialect(), {"request": request})
            try:
                response = handler(request)
            except BaseException as error:
                _failed(call, error)
                raise
            _took(call, response)
            return response

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            call = observer.begin(RequestDialect(), {"request": request})
            try:
                response = await handler(request)
            except BaseException as error:
                _failed(call, error)
                raise
            _took(call, response)
            return response

    return ContextHealthMiddleware()


def callback_handler(chat: ChatSource | Reporter, **options: Any) -> Any:
    """A callback handler that reports the calls of chat models: for ``callbacks=[...]``.

    Arguments as for ``middleware``; turns are told where ``turns=True`` is among the options.
    Use one of the two, or each call is told twice. Raises ImportError without ``langchain_core``.
    """
    base: Any = import_module("langchain_core.callbacks").BaseCallbackHandler
    observer = _observer(chat, options)

    class ContextHealthHandler(base):  # type: ignore[misc]
        """Reports; whatever goes wrong stays in here."""

        run_inline = True

        def __init__(self) -> None:
            super().__init__()
            self._calls: dict[UUID, Call] = {}

        @property
        def mistakes(self) -> int:
            return observer.mistakes

        def on_chat_model_start(
            self, serialized: Any, messages: Any, *, run_id: UUID, **more: Any
        ) -> None:
            given = {"messages": messages[0] if messages else [], **more}
            call = observer.begin(RunDialect(), given)
            if call is not None:
                self._calls[run_id] = call

        def on_llm_end(self, response: Any, *, run_id: UUID, **more: Any) -> None:
            call = self._calls.pop(run_id, None)
            if call is not None:
                call.took(RunDialect(), response)

        def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
            call = self._calls.pop(run_id, None)
            if call is not None:
                call.failed(error)

    return ContextHealthHandler()


class RequestDialect:
    """A model request of an agent, and the response to it."""

    def sent(self, given: Mapping[str, Any]) -> Sent:
        request = given["request"]
        settings = dict(read(request, "model_settings") or {})
        model = read(request, "model")
        listed = list(read(request, "messages") or ())
        return Sent(_first(model, _NAMES, str), _cap(settings, model), None, listed, parts)

    def reply(self, result: Any) -> Reply:
        found = read(result, "model_response") or result
        listed = read(found, "result")
        messages = listed if isinstance(listed, list) else [found]
        told = [message for message in messages if read(message, "type") == "ai"]
        return reply_of(told[-1]) if told else Reply()

    def gather(self) -> Gather:
        raise NotImplementedError("an agent's model call comes back whole")


class RunDialect:
    """What callbacks are told of a chat model's run."""

    def sent(self, given: Mapping[str, Any]) -> Sent:
        params = given.get("invocation_params") or {}
        listed = list(given.get("messages") or ())
        return Sent(_first(params, _NAMES, str), _cap(params, None), None, listed, parts)

    def reply(self, result: Any) -> Reply:
        rows = read(result, "generations") or [[]]
        message = read(rows[0][0], "message") if rows and rows[0] else None
        return reply_of(message) if message is not None else Reply()

    def gather(self) -> Gather:
        raise NotImplementedError("callbacks are told of a stream when it is over")


def _observer(chat: ChatSource | Reporter, options: dict[str, Any]) -> Observer:
    if not isinstance(chat, Reporter):
        return Observer(chat, **options)
    reporter = chat
    own = {key: options.pop(key) for key in ("messages", "turns", "count") if key in options}

    def of_thread() -> Chat:
        return reporter.chat(_thread() or "default", **options)

    return Observer(of_thread, **own)


def _thread() -> str | None:
    """The LangGraph thread that runs here, if any."""
    try:
        config: Any = import_module("langgraph.config").get_config()
        found = config.get("configurable", {}).get("thread_id")
    except Exception:
        # Outside of a graph, or without LangGraph at all.
        return None
    return None if found is None else str(found)


def _turn_started(observer: Observer, turns: dict[str, str]) -> None:
    chat = observer.chat()
    if chat is not None:
        end_turn(chat, turns.get(chat.id), observer.talk(chat))
        turns[chat.id] = chat.turn_started()
        observer.within(chat, turns[chat.id])


def _turn_ended(observer: Observer, turns: dict[str, str], state: Any) -> None:
    chat = observer.chat()
    turn = None if chat is None else turns.pop(chat.id, None)
    if chat is None or turn is None:
        return
    last = (read(state, "messages") or [None])[-1]
    reply = reply_of(last) if read(last, "type") == "ai" else Reply()
    spoke = bool((reply.content or {}).get("text_chars"))
    chat.turn_ended(turn, "answered" if spoke else "silent")
    observer.within(chat, None)


def _took(call: Call | None, response: Any) -> None:
    if call is not None:
        call.took(RequestDialect(), response)


def _failed(call: Call | None, error: BaseException) -> None:
    if call is not None:
        call.failed(error)


def _cap(settings: Any, model: Any) -> int | None:
    cap: int | None = _first(settings, _CAPS, int) or _first(model, _CAPS, int)
    return cap


def _first(owner: Any, names: tuple[str, ...], kind: type) -> Any:
    for name in names:
        value = read(owner, name)
        if isinstance(value, kind) and value and (kind is str or whole(value)):
            return value
    return None
