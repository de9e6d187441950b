"""Which model each of an agent's chats speaks to."""

from __future__ import annotations

from collections.abc import Sequence

from ctxhealth.store.models import Chat


def chat_models(agent_id: int, names: Sequence[str]) -> dict[str, str]:
    """Model by the agent's own name of the chat; chats of no known model are left out."""
    rows = Chat.objects.filter(agent_id=agent_id, external_id__in=list(names)[:500])
    return {name: model for name, model in rows.values_list("external_id", "model") if model}
