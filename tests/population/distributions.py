"""What real sessions do, as numbers: quantiles of nine coding sessions of three agents.

Measured over 1,217 pairs of following requests, 859 tool results, 119 user messages, 877 replies
with their times and 135 turns; no content. Sizes are tokens, times seconds. Tool results were
counted in characters, four to the token; loads are the providers' own.
"""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import NamedTuple


class Quantiles(NamedTuple):
    """Values at rising shares of the sample; between two of them a straight line."""

    shares: tuple[float, ...]
    values: tuple[float, ...]

    def draw(self, random: Random) -> float:
        share = random.random()
        right = min(bisect_right(self.shares, share), len(self.shares) - 1)
        low, high = self.shares[right - 1], self.shares[right]
        start, end = self.values[right - 1], self.values[right]
        return start + (end - start) * (share - low) / (high - low)


SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)


def _at_shares(*values: float) -> Quantiles:
    return Quantiles(SHARES, values)


# From one request's prompt to the next one's, no compaction between. It falls where an agent
# drops old reasoning or old tool results by itself.
GROWTH = _at_shares(
    -16_813, 69, 112, 156, 230, 288, 367, 483, 608, 867, 1_297, 2_273, 4_099, 7_972, 15_454, 30_863
)
TOOL_RESULT = _at_shares(
    0, 3, 3, 9, 32, 38, 43, 88, 211, 308, 551, 1_113, 2_134, 5_676, 10_048, 16_433
)
USER_MESSAGE = _at_shares(0, 0, 0, 4, 7, 11, 14, 20, 31, 36, 52, 81, 116, 215, 368, 540)
REPLY = _at_shares(
    1, 37, 60, 78, 97, 115, 135, 174, 229, 310, 464, 945, 1_552, 2_666, 3_525, 16_099
)
REQUESTS_A_TURN = _at_shares(1, 1, 1, 1, 1, 2, 4, 5, 7, 9, 13, 23, 43, 51, 52, 67)
# To a reply's first token; its text then comes at TOKENS_A_SECOND (14,948 tokens took 192 s).
FIRST_TOKEN_S = _at_shares(1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 5, 8, 11, 38)
TOKENS_A_SECOND = (72.0, 96.0)
# Approvals that wait for somebody, builds, and sub-agents are in it.
TOOL_S = _at_shares(0, 0, 0, 1, 1, 1, 2, 2, 3, 5, 10, 41, 178, 503, 735, 4_944)
# From an answer to the next message: a working afternoon has nights and lunches in it.
BETWEEN_TURNS_S = _at_shares(
    4, 6, 16, 25, 32, 57, 89, 120, 172, 1_472, 14_721, 19_524, 22_809, 26_841, 40_794, 40_794
)
# Calls in one reply that has any.
CALLS = (1,) * 958 + (2,) * 96 + (3,) * 28 + (4,) * 31 + (7, 10)

# Where eight compactions began, as shares of the window, and what they left, as shares of that.
COMPACTS_AT = (0.775, 0.781, 0.8125, 0.8395, 0.8737, 0.8835, 0.9246)
LEAVES = (0.147, 0.155, 0.230, 0.264, 0.290, 0.308, 0.321, 0.322)
# By hand: 149,310 of 200,000; people also do it long before.
BY_HAND_AT = (0.45, 0.75)
FIRST_PROMPT = (2_775, 17_088, 40_752, 41_489, 42_398)
# Of 484 replies 18 were broken off by the user, 16 of 411 tool results were errors.
CANCELLED = 18 / 484
