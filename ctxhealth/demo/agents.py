"""The demo's agents: which process runs which chats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ctxhealth.demo import agent_zero, healthy, latchless, maka, qwenpaw
from ctxhealth.demo.body import Spec
from ctxhealth.demo.loop import Loop


@dataclass(frozen=True)
class Role:
    """One chat of one agent."""

    loop: type[Loop]
    spec: Spec


@dataclass(frozen=True)
class DemoAgent:
    """One process. ``fallback`` is what its hello says: engine, or none where it has none."""

    name: str
    runtime: str
    version: str
    roles: tuple[Role, ...]
    fallback: str = "engine"


def _one(loop: type[Loop], make: Callable[[str, str], Spec], chat: str, title: str) -> Role:
    return Role(loop, make(chat, title))


def _healthy(name: str, titles: tuple[str, ...]) -> DemoAgent:
    roles = tuple(
        _one(healthy.Healthy, healthy.spec, f"{name}-{at}", title)
        for at, title in enumerate(titles, 1)
    )
    return DemoAgent(name, "demo-coder", "2.4.0", roles)


AGENTS: dict[str, DemoAgent] = {
    agent.name: agent
    for agent in (
        DemoAgent("agent-zero-ops", "agent-zero", "1.7", (
            _one(agent_zero.EmptyUtility, agent_zero.spec, "nightly", "Nightly migration"),
        )),
        DemoAgent("agent-zero-night", "agent-zero", "1.7", (
            _one(agent_zero.QuotaUtility, agent_zero.spec, "inventory", "Inventory sync"),
        )),
        DemoAgent("maka-desk", "maka", "0.1.11", (
            _one(maka.Maka, maka.spec, "billing", "Callers of the old billing API"),
        ), fallback="none"),
        DemoAgent("qwenpaw-mail", "qwenpaw", "2.2.2", (
            _one(qwenpaw.QwenPaw, qwenpaw.spec, "contract", "Contract against invoices"),
        )),
        DemoAgent("reasonix-dev", "reasonix", "1.38.11", (
            _one(latchless.Latchless, latchless.spec, "parser", "Parser tests"),
        )),
        _healthy("coder-a", healthy.TITLES[:6]),
        _healthy("coder-b", healthy.TITLES[6:]),
    )
}  # fmt: skip
