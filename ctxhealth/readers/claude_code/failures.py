"""What went wrong, as far as rows say so: failed calls, failed compactions, retries."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.claude_code import texts
from ctxhealth.readers.claude_code.compactions import Compactions
from ctxhealth.readers.claude_code.replies import Replies, request_name
from ctxhealth.readers.claude_code.rows import plain_text
from ctxhealth.readers.claude_code.stay import Stay
from ctxhealth.readers.claude_code.turns import Turns
from ctxhealth.readers.errors import model_error
from ctxhealth.readers.timeline import Timeline
from ctxhealth.readers.values import Row, count_at, dict_at, one_line, text_at


class Failures:
    """Keeps nothing of its own: it tells what the other parts of the chat then know."""

    def __init__(
        self,
        line: Timeline,
        turns: Turns,
        replies: Replies,
        compactions: Compactions,
        stay: Stay,
    ) -> None:
        self._line, self._turns, self._replies = line, turns, replies
        self._compactions, self._stay = compactions, stay

    def compaction(self, uuid: str, ts: int, trigger: str, reason: str) -> None:
        self._compactions.failure(uuid, ts, trigger, reason)
        self._stay.known()

    def api_error(self, row: Row, uuid: str, ts: int, sent: int) -> None:
        """The row written in place of a reply. ``sent``: when its request left, if it did."""
        text = plain_text(row).strip()
        status = count_at(row, "apiErrorStatus")
        _, mark, reason = text.partition(texts.FAILED_COMPACTION)
        if mark:
            trigger = "proactive" if status is None else "reactive"
            self.compaction(uuid, ts, trigger, reason.strip())
        if text.startswith(texts.TOO_LONG) and status is None and self._replies.pending is None:
            # The program's own limit: no provider was asked, and none said what fits.
            self._line.extend(self._turns.ensure(uuid, sent))
            self._line.add("guard.refused", ts, code=texts.TOO_LONG)
        else:
            request = self._request(uuid, sent)
            self._line.add("model.failed", ts, request=request, **_failure(row, text, status))
        self._turns.end("error", ts, text[:400])

    def retry(self, row: Row, ts: int) -> None:
        """The provider failed and is asked again by the program itself."""
        attempt, most = count_at(row, "retryAttempt"), count_at(row, "maxRetries")
        words = text_at(dict_at(row, "error"), "message") or text_at(row, "error") or "an error"
        tries = f" ({attempt} of {most})" if attempt is not None and most is not None else ""
        text = f"The provider failed and is asked again{tries}: {one_line(words, 300)}"
        self._line.add("note", ts, level="warning", code="api_retry", text=text)

    def _request(self, uuid: str, sent: int) -> str:
        """The id of the request that failed, told as sent where no row said so."""
        if self._replies.pending is None:
            self._replies.request(request_name(uuid), sent)
        return self._replies.answered()


def _failure(row: Row, text: str, status: int | None) -> dict[str, Any]:
    stated = text_at(row, "error")
    # Behind the mark stands why the compaction failed, not why the call did.
    words = text.partition(texts.FAILED_COMPACTION)[0]
    prompt, window = texts.stated_sizes(text)
    return {
        "error": model_error(words, status, stated),
        "status": status,
        "detail": text[:2_000],
        "code": stated,
        "stated_prompt": prompt,
        "stated_window": window,
    }
