"""Which numbered cases there are, which tests carry them, and which are not ours and why.

The numbers are those of the collection the cases were gathered in: Q for QwenPaw, M for Maka, R
for Reasonix, A for Agent Zero. Gaps are numbers that the collection itself left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])


def _numbers(letter: str, *ranges: tuple[int, int], without: tuple[int, ...] = ()) -> set[str]:
    found = {number for low, high in ranges for number in range(low, high + 1)}
    return {f"{letter}{number:02d}" for number in found - set(without)}


ALL = (
    _numbers("Q", (1, 44), without=(6, 11, 22, 35, 43))
    | _numbers("M", (1, 61), without=(9, 13, 16, 20, 26, 48, 59))
    | _numbers("R", (1, 29), without=(9, 15, 20, 27))
    | _numbers("A", (1, 40))
)
COVERED: dict[str, list[str]] = {}


def covers(*cases: str) -> Callable[[Test], Test]:
    """Say which cases a test carries."""

    def note(test: Test) -> Test:
        for case in cases:
            COVERED.setdefault(case, []).append(test.__qualname__)
        return test

    return note


# Behaviour of one agent's own code, which nothing on the wire tells and the engine does not have.
NOT_OURS = {
    "Q16": "an agent's manual command skips its own first stage; the engine has one order",
    "Q17": "a limit of 200 characters of that agent; ours is that a pointer must be smaller (Q13)",
    "M02": "an estimate by signed characters; our projection only falls with a compaction",
    "M03": "an estimate by signed characters, as M02",
    "M17": "a prefix of one agent's own list of events; the wire has no such list",
    "M18": "as M17, with an event that is still being written",
    "M19": "as M17; that pairs stay whole is tested with M24 and M36",
    "M22": "as M17; what it reports is M23",
    "M25": "as M17, between turns",
    "M53": "whether an agent resends after text was shown; the wire tells neither",
    "M56": "the spacing of one agent's retries",
    "R17": "which part of a summarizer's answer an agent takes for the summary",
    "R22": "the ladder of forms in which one agent resends an overflowing request",
    "R23": "how many tool rounds one agent leaves alone; ours keeps results (Q20)",
    "A03": "which response ids an agent forgets after a compaction",
    "A08": "the headings of one agent's summary prompt",
    "A10": "how an agent cuts its summarizer's input in chunks",
    "A11": "how an agent stitches the summaries of those chunks",
    "A12": "how an agent writes its summary back into its own history",
    "A14": "how an agent renders its messages for the model",
    "A20": "how an agent loads damaged files of its own",
    "A21": "when one agent's summarizer step declines a short topic",
    "A25": "how much of its text an agent gives its summarizer; too much of it is A26",
    "A28": "where one agent cuts by user messages; ours keeps whole turns (A17)",
}  # fmt: skip
# The Agent Zero cases have no numbers of their own; these are given in their order of mention.
AGENT_ZERO = {
    "A01": "one pass that changes nothing is one stalled attempt",
    "A02": "64 passes that free one token each",
    "A03": "response ids are cleared after a compaction",
    "A04": "a finished background pass, then passes that end below the limit",
    "A05": "a pass that says it worked and reduces nothing",
    "A06": "the utility model times out",
    "A07": "the background pass times out",
    "A08": "the summary prompt's headings",
    "A09": "a lone surrogate in a backup",
    "A10": "85,000 characters in chunks of 10,000",
    "A11": "one final summary of all chunks",
    "A12": "one message stands for what was compacted",
    "A13": "the summary has the plain view, the backup the raw one",
    "A14": "how messages are rendered",
    "A15": "a topic with two long messages and a dead utility model",
    "A16": "a bulk with two long messages and a dead utility model",
    "A17": "no bulks to merge",
    "A18": "empty replies up to a limit of 2",
    "A19": "the same reply again, and thinking alone",
    "A20": "a message whose content was lost",
    "A21": "attention on a topic of 2 and of 5 messages",
    "A22": "a history limit beside what else is in the prompt",
    "A23": "a window guard that keeps the newest message",
    "A24": "a system prompt that is too big alone",
    "A25": "the utility model's input trimmed to its window",
    "A26": "a summary request above the utility model's window",
    "A27": "no movement for too long, but never while idle",
    "A28": "eviction at the next user turn",
    "A29": "a trigger of 0.65 of 500,000",
    "A30": "under the limit: nothing done",
    "A31": "35 topics, a healthy utility model: far below the target",
    "A32": "12 topics of 8 messages, healthy",
    "A33": "one topic of 60 messages, healthy",
    "A34": "the utility model raises: nothing changed, one call",
    "A35": "the utility model answers nothing: topics moved, tokens the same",
    "A36": "the utility model answers twice as much",
    "A37": "one bulk of 55,001 tokens: reduced and still over",
    "A38": "two huge messages and a dead utility model",
    "A39": "an image becomes a few tokens",
    "A40": "longer topics replaced by an empty summary",
}
