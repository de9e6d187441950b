"""What is promised, in words: the prose of docs/protocol.md. Each line has a test that names it."""

from __future__ import annotations

from ctxhealth.wire import limits

INTRODUCTION = """\
One websocket per agent process at `/ws/agent/v1/`, JSON text frames, UTF-8. The handshake carries
`Authorization: Bearer ctxh_<key id>_<secret>`; a request with an `Origin` or a `Cookie` header is
refused with 403, because only browsers send those by themselves. A bad token is accepted and then
closed with 4401, so that the agent sees why. Token scopes: `ingest`, and `command` where the agent
may be told to act. Absent is unknown, never 0. Fields that this version does not know are kept in
the stored event and ignored; an event of an unknown type is stored, shown and folded as nothing.
This page is written from the code that decodes the protocol; the JSON Schema of the same is at
`/api/protocol.json`."""

LINES = (
    "**Stream.** A stream is (agent, epoch). The token binds the agent's name on the server. An "
    "epoch lasts as long as the agent's outbox; a new one begins where that was lost.",
    "**Seq.** Events of a stream count 1, 2, 3 without holes, from the moment they enter the "
    "agent's outbox, not when they are sent.",
    "**Hello.** First `hello`, then `welcome` or a close with 4406 that names the version spoken. "
    f"Nothing else is legal before, and hello comes within {limits.HELLO_SECONDS} s.",
    "**Ack.** `ack` is cumulative and sent only after the transaction with every event up to it "
    "was committed and synced to disk.",
    "**One transaction.** Dedupe, events, their effects and the stream's head commit together; "
    "nothing else remembers what was seen.",
    "**Duplicate.** A seq at or below the head is success and changes nothing. With other content "
    "it is a conflict: the first stays, and the chat's log and the agent's counters tell of it.",
    "**Gap.** Behind a missing seq nothing is stored: `resend {from}` asks to go back to it. "
    f"After {limits.RESENDS_PER_MINUTE} fruitless resends in a minute the connection is closed "
    "with 4409.",
    "**Loss.** What an agent had to drop is an event `gap {count, reason}` in its place; no hole "
    "is ever inferred.",
    "**Newest wins.** A newer connection of an agent takes over: the older one writes nothing "
    "more, which is checked inside the transaction, and is closed with 4408.",
    "**Resume.** `welcome.acked` says where to go on; it may be more than the agent knows. An "
    "agent forgets only what was acked.",
    f"**Batch.** At most {limits.BATCH_EVENTS} events and {limits.FRAME_BYTES // 1024} KiB a "
    f"frame, {limits.EVENT_BYTES // 1024} KiB an event, {limits.JSON_DEPTH} levels deep.",
    "**Reject.** A permanently bad event leaves a tombstone in its place, is named in "
    "`ack.rejected` with field and reason, and is final. Passing trouble rejects nothing. A value "
    "that is no JSON (`NaN`, a bad escape, a missing quote) costs its own event alone: only a "
    "frame whose type, epoch or list of events cannot be read is closed with 4400.",
    f"**Flow.** At most {limits.INFLIGHT_EVENTS:,} events in flight; twice that is closed with "
    "1013. While the server cannot write there is `busy` and no ack, and the connection stays.",
    f"**Heartbeat.** Both send `hb` every {limits.HEARTBEAT_SECONDS} s. An agent is late after "
    f"{limits.LATE_SECONDS} s and offline after {limits.OFFLINE_SECONDS} s of silence, by the "
    "server's monotonic clock.",
    "**Restore.** A database that was put back gets another `welcome.incarnation`; agents send "
    "again what they still hold, and commands from before end as `unknown`.",
    "**Time.** The agent's `ts` and the time of receipt are both kept; order is by seq. Skew is "
    "shown and never a reason to reject.",
    "**Command.** A command is committed first and then sent, at least once; the agent executes "
    "an id at most once and answers a redelivery with what it stored.",
    "**States.** `queued > sent > received > waiting > started >` one of `succeeded, failed, "
    "refused, expired, cancelled, unknown`: forward only, the end is final, each step in the log.",
    "**Fence.** `expected` holds epoch, number of ended compactions and latch; what no longer "
    "holds is `refused(stale)`. One open command that changes a chat at a time.",
    "**Time to live.** An offline agent is said before the press. `deliver_ms` is what remains; "
    "what is not received in time expires visibly, a lost lease ends as `unknown`.",
)

CLOSE_CODES = (
    (limits.CLOSE_NO_TEXT, "a text frame that is not UTF-8; the websocket layer itself closes"),
    (
        limits.CLOSE_FRAME_SIZE,
        f"a frame of more than {limits.FRAME_BYTES // 1024} KiB; the websocket layer itself closes",
    ),
    (limits.CLOSE_RESTART, "the server restarts: come back, with jitter"),
    (
        limits.CLOSE_OVERLOAD,
        "too much, nothing heard, or the database is away: come back, with jitter",
    ),
    (limits.CLOSE_BAD_FRAME, "bad frame; the reason names what"),
    (limits.CLOSE_TOKEN, "the token is unknown, expired or revoked"),
    (limits.CLOSE_SCOPE, "the token may not do this"),
    (limits.CLOSE_VERSION, "no version in common; the reason names what is spoken"),
    (limits.CLOSE_REPLACED, "a newer connection of this agent took over"),
    (limits.CLOSE_CANNOT_RESUME, "what is missing was asked for in vain"),
    (limits.CLOSE_TOO_BIG, f"hello of more than {limits.HELLO_BYTES // 1024} KiB"),
    (limits.CLOSE_RATE, "over the rate for too long"),
)

HTTP = """\
`POST /api/v1/events` takes the same events as NDJSON, one a line, at most 1,000 of them and 1 MiB,
with the headers `Authorization`, `Ctxhealth-Agent`, `Ctxhealth-Epoch` and, where the events carry
no `seq`, `Ctxhealth-First-Seq`. The answer comes after the commit: `{epoch, acked, results}` with
one of `stored`, `duplicate`, `conflict`, `rejected` (with code, path, detail) or `gap` for each
event; 409 with `resend_from` where one was missing, 503 with `Retry-After` where the server cannot
write now. A chat that is reported this way has no command channel, and is shown so."""
