"""Operators' words about windows: set, ended, never changed in place."""

from __future__ import annotations

from typing import Any

from ctxhealth.store import judging
from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import Agent, WindowOverride
from ctxhealth.store.projects import default_project
from ctxhealth.store.through import call
from ctxhealth.store.writes.audit import audit
from ctxhealth.store.writes.settings import rules_changed

MOST = 2**53 - 1


def window_override_set(
    *,
    model: str,
    window: int,
    max_input: int | None = None,
    provider: str = "",
    agent: str | None = None,
    note: str = "",
    by: Any = None,
) -> WindowOverride:
    """State a window; one that was in force for the same chats ends.

    Stored chats are judged anew by the running server, or at its next start. Raises ValueError
    naming the field and the reason.
    """
    model, provider = model.strip(), provider.strip()
    if not 1 <= len(model) <= 200:
        raise ValueError("model: 1 to 200 characters, * for any")
    if len(provider) > 200:
        raise ValueError("provider: at most 200 characters")
    if not 0 < window <= MOST:
        bound = f"at most {MOST:,}" if window > MOST else "above 0"
        raise ValueError(f"window: must be {bound}, not {window}")
    if max_input is not None and not 0 < max_input <= window:
        raise ValueError(f"max_input: must be above 0 and at most the window, not {max_input}")
    made = call(_set, model, window, max_input, provider, agent, note, by)
    judging.forget()
    return made


def window_override_end(*, override_id: int, by: Any = None) -> bool:
    """End one; False where it does not exist or already ended."""
    ended = call(_end, override_id, by)
    judging.forget()
    return ended


def _set(
    model: str,
    window: int,
    max_input: int | None,
    provider: str,
    agent: str | None,
    note: str,
    by: Any,
) -> WindowOverride:
    project, now = default_project(), now_ms()
    owner = None if agent is None else _agent(project.pk, agent)
    same = {"project": project, "agent": owner, "model": model, "provider": provider}
    WindowOverride.objects.filter(**same, ended_at=None).update(ended_at=now)
    made = WindowOverride.objects.create(
        **same,
        window=window,
        max_input=max_input,
        note=note.strip(),
        by=by,
        by_name=by.get_username() if by is not None else "",
        created_at=now,
    )
    rules_changed()
    detail = {"window": window, "max_input": max_input}
    audit(
        action="window_override.set",
        result="done",
        by=by,
        target=_target(made),
        reason=made.note,
        detail=detail,
    )
    return made


def _agent(project: int, name: str) -> Agent:
    found = Agent.objects.filter(project_id=project, name=name).first()
    if found is None:
        raise ValueError(f"agent: none is called {name!r}")
    return found


def _end(override_id: int, by: Any) -> bool:
    found = WindowOverride.objects.filter(id=override_id, ended_at=None).first()
    if found is None:
        return False
    found.ended_at = now_ms()
    found.save(update_fields=["ended_at"])
    rules_changed()
    audit(action="window_override.end", result="done", by=by, target=_target(found))
    return True


def _target(override: WindowOverride) -> str:
    parts = [override.model]
    if override.provider:
        parts.append(f"of {override.provider}")
    if override.agent is not None:
        parts.append(f"for {override.agent.name}")
    return " ".join(parts)[:300]
