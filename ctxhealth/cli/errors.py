"""What ends a command early, each as one sentence and an exit code."""

from __future__ import annotations

WRONG_INPUT = 2
REFUSED = 3
UNREACHED = 4
INTERRUPTED = 130
UNREAD = 141


class CannotSend(Exception):
    """``str`` is a sentence for the person at the terminal."""

    def __init__(self, sentence: str, code: int = WRONG_INPUT) -> None:
        super().__init__(sentence)
        self.code = code
