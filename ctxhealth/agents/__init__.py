"""Integrations: plugins that live inside an agent, bridges beside one, wrappers around a model.

``agent_zero`` and ``qwenpaw`` are folders that a user drops into the agent (``ctxhealth plugin``);
``maka`` and ``reasonix`` are processes that follow a running agent from outside (``ctxhealth
bridge``); ``openai_client``, ``anthropic_client``, ``langchain_middleware`` and
``message_fallback`` are a few lines in an agent's own code.
"""

from __future__ import annotations
