"""Selectors: every read of the product. Nothing outside the store touches the ORM.

Views are the core's Structs, decoded from what the writer stored; rows are small frozen classes.
A missing chat, command or agent is ``None``.
"""

from __future__ import annotations

from ctxhealth.store.queries.agents import AgentRow, agents_list, fleet_outcomes, stream_find
from ctxhealth.store.queries.audit import AuditPage, AuditRow, audit_page
from ctxhealth.store.queries.board import (
    BoardFilters,
    BoardPage,
    BoardRow,
    board_page,
    board_rows,
    board_versions,
    counts_by_severity,
    filter_choices,
)
from ctxhealth.store.queries.chat_models import chat_models
from ctxhealth.store.queries.chats import (
    ChatRow,
    chat_attempt,
    chat_attempts,
    chat_children,
    chat_detail,
    chat_find,
    chat_findings,
    chat_get,
    chat_latches,
    chat_readings,
    chat_state,
    chats_due,
)
from ctxhealth.store.queries.commands import (
    CommandRow,
    chat_commands,
    command_get,
    command_open,
    commands_cancelling,
    commands_due,
)
from ctxhealth.store.queries.events import EventRow, chat_event, chat_event_types, chat_events
from ctxhealth.store.queries.imports import (
    ImportPage,
    ImportRow,
    Trouble,
    chat_of,
    import_get,
    import_names,
    import_next,
    import_place,
    import_twin,
    imports_page,
    stream_head,
)
from ctxhealth.store.queries.items import ItemRow, chat_history_mirror, chat_items
from ctxhealth.store.queries.logins import login_failures
from ctxhealth.store.queries.overrides import OverrideRow, window_overrides
from ctxhealth.store.queries.people import PersonRow, people_list, person_get
from ctxhealth.store.queries.server import StoreCounts, database_words, store_counts
from ctxhealth.store.queries.settings import (
    JudgingRow,
    SettingRow,
    judging_status,
    retention_days,
    settings_in_force,
)
from ctxhealth.store.queries.tokens import TokenRow, token_check, tokens_list, tokens_usable

__all__ = [
    "AgentRow",
    "AuditPage",
    "AuditRow",
    "BoardFilters",
    "BoardPage",
    "BoardRow",
    "ChatRow",
    "CommandRow",
    "EventRow",
    "ImportPage",
    "ImportRow",
    "ItemRow",
    "JudgingRow",
    "OverrideRow",
    "PersonRow",
    "SettingRow",
    "StoreCounts",
    "TokenRow",
    "Trouble",
    "agents_list",
    "audit_page",
    "board_page",
    "board_rows",
    "board_versions",
    "chat_attempt",
    "chat_attempts",
    "chat_children",
    "chat_commands",
    "chat_detail",
    "chat_event",
    "chat_event_types",
    "chat_events",
    "chat_find",
    "chat_findings",
    "chat_get",
    "chat_history_mirror",
    "chat_items",
    "chat_latches",
    "chat_models",
    "chat_of",
    "chat_readings",
    "chat_state",
    "chats_due",
    "command_get",
    "command_open",
    "commands_cancelling",
    "commands_due",
    "counts_by_severity",
    "database_words",
    "filter_choices",
    "fleet_outcomes",
    "import_get",
    "import_names",
    "import_next",
    "import_place",
    "import_twin",
    "imports_page",
    "judging_status",
    "login_failures",
    "people_list",
    "person_get",
    "retention_days",
    "settings_in_force",
    "store_counts",
    "stream_find",
    "stream_head",
    "token_check",
    "tokens_list",
    "tokens_usable",
    "window_overrides",
]
