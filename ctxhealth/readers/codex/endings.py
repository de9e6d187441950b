"""How a task ends that ends with an error: of a compaction, of a cut reply, or of a call."""

from __future__ import annotations

from ctxhealth.readers.codex.compactions import Compactions
from ctxhealth.readers.codex.context import Context
from ctxhealth.readers.codex.failures import Failure
from ctxhealth.readers.codex.replies import Replies
from ctxhealth.readers.codex.tasks import Tasks
from ctxhealth.readers.timeline import Timeline


class Endings:
    """Keeps nothing of its own: it tells what the other parts of the chat then know."""

    def __init__(
        self,
        line: Timeline,
        context: Context,
        tasks: Tasks,
        replies: Replies,
        compactions: Compactions,
    ) -> None:
        self._line, self._context, self._tasks = line, context, tasks
        self._replies, self._compactions = replies, compactions

    def failed(self, failure: Failure, ts: int, sent: int) -> None:
        """``sent``: when the request left that failed, if it was one of the chat's own."""
        if self._is_compaction(failure):
            self._compaction(failure, ts)
        elif failure.cut is not None:
            if self._replies.group is not None:
                self._replies.group["finish"] = failure.cut
            self._replies.close()
        else:
            self._replies.close()
            self._compactions.resolve()
            self._request(failure, ts, min(sent or ts, ts))
        self._tasks.end("error", ts, failure.message[:400])

    def _is_compaction(self, failure: Failure) -> bool:
        """Before its first request a task writes one row more, and makes room before that if it
        must. One that failed without the row failed in making room, unless no load was known."""
        task = self._tasks.task
        if failure.remote or task is None or self._context.load is None:
            return failure.remote
        return not task["context"] and not task["replies"] and failure.cut is None

    def _compaction(self, failure: Failure, ts: int) -> None:
        group = self._replies.group
        # Usage without a reply is that of a summary which could not be used.
        unused = group is not None and not group["items"]
        summary = self._replies.taken() if unused else None
        self._replies.close()
        self._compactions.resolve()
        self._compactions.failed(
            ts, failure.message, failure.summarizer_error,
            inferred=not failure.remote, summary=summary,
        )  # fmt: skip

    def _request(self, failure: Failure, ts: int, sent: int) -> None:
        task = self._tasks.task
        request = f"failed-{task['id'] if task else ts}"[:200]
        self._line.extend(self._tasks.ensure(sent))
        self._line.add("request.sent", sent, request=request)
        self._line.add(
            "model.failed", ts, request=request, error=failure.error, status=failure.status,
            code=failure.code, detail=failure.message[:2_000],
        )  # fmt: skip
