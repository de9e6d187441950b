"""The kinds of agents in the population: what each declares, counts and leaves unsaid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctxhealth.wire.types import Dialect, Scope


@dataclass(frozen=True, kw_only=True)
class Model:
    """``window`` is the truth; what a chat declares of it is the runtime's business."""

    id: str
    window: int
    dialect: Dialect
    provider: str | None = None
    max_output: int | None = None


OPUS = Model(id="claude-opus-4-5-20251101", window=200_000, dialect="anthropic", max_output=32_000)
SONNET = Model(id="claude-sonnet-4-5", window=200_000, dialect="anthropic", max_output=32_000)
SONNET_LARGE = Model(
    id="claude-sonnet-4-6", window=1_000_000, dialect="anthropic", max_output=32_000
)
CODEX = Model(id="gpt-5.3-codex", window=258_400, dialect="codex", provider="openai")
GPT = Model(id="gpt-4.1", window=1_047_576, dialect="openai", provider="openai")
GLM = Model(id="glm-4.6", window=200_000, dialect="openai", provider="zai", max_output=16_000)
DEEPSEEK = Model(id="deepseek-chat", window=131_072, dialect="openai", provider="deepseek")
MINIMAX = Model(id="MiniMax-M2", window=196_608, dialect="anthropic", max_output=8_192)
GEMINI = Model(id="gemini-2.5-pro", window=1_048_576, dialect="gemini", provider="google")
LOCAL = Model(id="qwen3-14b-q5-house", window=32_768, dialect="llamacpp", max_output=2_048)
PRIVATE = Model(id="house-model-7", window=128_000, dialect="openai")


@dataclass(frozen=True, kw_only=True)
class Runtime:
    name: str
    share: float
    models: tuple[Model, ...]
    declares_window: bool = True
    # None: it declares none, and 4,096 are assumed.
    reserve: int | None = None
    # ``undeclared`` agents compact where the samples did.
    trigger: Literal["undeclared", "tokens", "ratio"] = "undeclared"
    trigger_share: float = 0.8
    inclusive: bool = False
    scope: Scope = "prompt"
    # A transcript that is read, without a command channel; times are the transcript's.
    read_only: bool = False
    # Looks at its trigger only between turns; inside one only before the window is full.
    between_turns: bool = False
    # What an item's size is told in.
    sizes: Literal["tokens", "chars", "bytes"] = "tokens"
    counts_requests: bool = False
    tells_bytes: bool = False
    tells_after: bool = True
    # Says so when it looked and nothing was needed.
    tells_not_needed: bool = False
    snapshots: bool = False
    utility: str | None = None
    # Cuts a reply's tool results to this many tokens in all, as agents with small windows do.
    cap: int | None = None
    usage: float = 1.0
    delta: bool = False
    # Names its output cap on every request; without one the provider's own holds.
    tells_cap: bool = False
    system: int | None = None


RUNTIMES = (
    Runtime(name="claude-code file", share=0.2, models=(OPUS, SONNET), declares_window=False,
            read_only=True, sizes="chars", tells_after=False),
    Runtime(name="claude agent", share=0.1, models=(SONNET, OPUS, SONNET_LARGE),
            counts_requests=True, tells_bytes=True, tells_cap=True),
    Runtime(name="codex file", share=0.08, models=(CODEX,), read_only=True, sizes="chars",
            tells_after=False),
    Runtime(name="responses agent", share=0.05, models=(GPT,), delta=True, reserve=16_384,
            counts_requests=True, tells_bytes=True),
    Runtime(name="pi", share=0.08, models=(SONNET, OPUS), read_only=True),
    Runtime(name="agent-zero", share=0.12, models=(GLM,), trigger="tokens", trigger_share=0.7,
            scope="history", snapshots=True, utility="glm-4.5-air", system=9_500,
            tells_cap=True),
    Runtime(name="maka", share=0.1, models=(GLM, DEEPSEEK), trigger="ratio", inclusive=True,
            counts_requests=True, tells_not_needed=True),
    Runtime(name="reasonix", share=0.05, models=(DEEPSEEK,), trigger="ratio", reserve=8_192,
            between_turns=True, counts_requests=True, utility="deepseek-chat"),
    Runtime(name="qwenpaw", share=0.07, models=(MINIMAX, GLM), reserve=4_096, trigger="ratio",
            trigger_share=0.75, counts_requests=True, tells_bytes=True, tells_not_needed=True),
    Runtime(name="large window", share=0.05, models=(GEMINI, SONNET_LARGE), declares_window=False,
            sizes="bytes"),
    Runtime(name="small window", share=0.06, models=(LOCAL,), reserve=2_048, trigger="ratio",
            cap=4_000, counts_requests=True, system=2_100, tells_cap=True),
    Runtime(name="silent about usage", share=0.04, models=(PRIVATE,), declares_window=False,
            usage=0.0, counts_requests=True, sizes="tokens"),
)  # fmt: skip
