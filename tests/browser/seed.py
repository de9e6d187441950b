"""Makes people and tokens in a server's data folder: `python -m tests.browser.seed '{...}'`.

A process of its own, so that no test process opens the database of the server it drives.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import django


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    django.setup()
    from ctxhealth.ops import first_start
    from ctxhealth.store import writes

    first_start.data_dir_prepare()
    first_start.database_prepare()
    people = wanted.get("people", {"ada": "operator"})
    tokens = wanted.get("tokens", {"agents": ["ingest", "command"]})
    links = wanted.get("links", 6)
    answer: dict[str, Any] = {"logins": {}, "tokens": {}}
    for name, role in people.items():
        user = writes.user_ensure(username=name, role=role)
        answer["logins"][name] = [writes.login_link_create(user=user) for _ in range(links)]
    for name, scopes in tokens.items():
        answer["tokens"][name] = writes.token_create(name=name, scopes=scopes).secret
    for name in wanted.get("disable", []):
        user = writes.user_ensure(username=name, role="viewer")
        user.is_active = False
        user.save(update_fields=["is_active"])
    if wanted.get("overdue"):
        _make_overdue()
    return answer


def _make_overdue() -> None:
    """Every command that has not reached its agent should have by now."""
    from ctxhealth.store.models import Command

    Command.objects.filter(state__in=("queued", "sent")).update(deliver_by=1)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
