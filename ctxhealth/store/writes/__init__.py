"""Services: every write of the product, keyword only, through the one writer.

Each returns after its commit. ``by`` is a Django user or None for the server itself.
"""

from __future__ import annotations

from ctxhealth.store.through import StoreBusy, acall
from ctxhealth.store.writes.agents import (
    agent_connect,
    agent_disconnect,
    agent_seen,
    chats_announce,
    chats_tick,
)
from ctxhealth.store.writes.audit import audit
from ctxhealth.store.writes.commands import (
    OpenCommand,
    Refused,
    command_cancel,
    command_request,
)
from ctxhealth.store.writes.delivery import command_expire_due, commands_take
from ctxhealth.store.writes.imports import (
    Refusal,
    agent_of,
    import_ended,
    import_left,
    import_place_keep,
    import_progress,
    import_queue,
    import_started,
    import_stream,
    imports_settle,
)
from ctxhealth.store.writes.incidents import (
    group_own,
    incident_own,
    note_add,
    note_delete,
    note_edit,
    review_create,
    verdict_set,
)
from ctxhealth.store.writes.model_table import model_table_put
from ctxhealth.store.writes.oncall import handover_save, silence_end, silence_set
from ctxhealth.store.writes.overrides import window_override_end, window_override_set
from ctxhealth.store.writes.people import (
    LOGIN_MINUTES,
    login_link_create,
    login_link_use,
    user_disable,
    user_ensure,
    user_give,
    user_set_role,
)
from ctxhealth.store.writes.settings import (
    retention_set,
    rules_changed,
    threshold_reset,
    threshold_set,
)
from ctxhealth.store.writes.tokens import (
    TokenSecret,
    token_create,
    token_revoke,
    token_rotate,
    token_seen,
    token_used,
)

__all__ = [
    "LOGIN_MINUTES",
    "OpenCommand",
    "Refusal",
    "Refused",
    "StoreBusy",
    "TokenSecret",
    "acall",
    "agent_connect",
    "agent_disconnect",
    "agent_of",
    "agent_seen",
    "audit",
    "chats_announce",
    "chats_tick",
    "command_cancel",
    "command_expire_due",
    "command_request",
    "commands_take",
    "group_own",
    "handover_save",
    "import_ended",
    "import_left",
    "import_place_keep",
    "import_progress",
    "import_queue",
    "import_started",
    "import_stream",
    "imports_settle",
    "incident_own",
    "login_link_create",
    "login_link_use",
    "model_table_put",
    "note_add",
    "note_delete",
    "note_edit",
    "retention_set",
    "review_create",
    "rules_changed",
    "silence_end",
    "silence_set",
    "threshold_reset",
    "threshold_set",
    "token_create",
    "token_revoke",
    "token_rotate",
    "token_seen",
    "token_used",
    "user_disable",
    "user_ensure",
    "user_give",
    "user_set_role",
    "verdict_set",
    "window_override_end",
    "window_override_set",
]
