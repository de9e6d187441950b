"""Live regions as HTML: the same partial for the first render and for every update.

Pure: no query, no clock. Each top-level element of a fragment has one id, made of the server's
own words and integers (``REGION_ID`` is the allow-list). With ``oob`` it carries
``hx-swap-oob="morph"``, for the socket.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.template.loader import get_template

from ctxhealth.core.model import ChatDetail, Outcome, State
from ctxhealth.store.queries import CommandRow
from ctxhealth.store.queries.board_groups import BoardGroup
from ctxhealth.web import states
from ctxhealth.web.agent_rows import AgentLine
from ctxhealth.web.chat_page import ChatExtras, chat_context
from ctxhealth.web.filters import link
from ctxhealth.web.outcomes import outcome_bar
from ctxhealth.web.receipts import receipt_of
from ctxhealth.web.rows import BoardRowLike, row_of

BOARD_REGIONS = ("board-chips", "board-outcomes")
CHAT_REGIONS = (
    "head",
    "headline",
    "window",
    "gauges",
    "structure",
    "heavy",
    "findings",
    "change",
    "attempts",
    "latches",
    "commands",
    "children",
)
REGION_ID = re.compile(
    rf"^(row-\d+|group-\d+|{'|'.join(BOARD_REGIONS)}|agents-table|"
    rf"chat-\d+-({'|'.join(CHAT_REGIONS)})|command-[0-9a-f-]{{1,40}})$"
)


@dataclass(frozen=True, slots=True)
class Chip:
    """One state as a filter: ``on`` where the page is filtered by it; ``query`` toggles it."""

    state: str
    meta: states.Meta
    count: int
    on: bool
    query: str


def board_rows(
    rows: Iterable[BoardRowLike], now_ms: int, *, operate: bool, oob: bool = True
) -> dict[str, str]:
    """``row-<id>`` -> its ``<tr>``; with ``operate`` the row offers its actions."""
    template = get_template("web/regions/board_row.html")
    base = {"now": now_ms, "oob": oob, "operate": operate}
    return {f"row-{row.id}": template.render({**base, "row": row_of(row, now_ms)}) for row in rows}


def board_groups(
    groups: Iterable[BoardGroup], now_ms: int, *, alone: bool, oob: bool = True
) -> dict[str, str]:
    """``group-<id>`` -> the line above its chats; ``alone`` where the page shows only one."""
    template = get_template("web/regions/board_group.html")
    base = {"now": now_ms, "oob": oob, "alone": alone}
    return {f"group-{group.id}": template.render({**base, "group": group}) for group in groups}


def board_body(rows: Sequence[BoardRowLike], groups: Iterable[BoardGroup], now_ms: int, *,
               operate: bool, alone: bool) -> list[str]:  # fmt: skip
    """A page's rows with the line of each group before its first chat."""
    groups = list(groups)
    html = board_rows(rows, now_ms, operate=operate, oob=False)
    lines = board_groups(groups, now_ms, alone=alone, oob=False)
    for row, group in heads_of(rows, groups).items():
        html[f"row-{row}"] = lines[f"group-{group}"] + html[f"row-{row}"]
    return list(html.values())


def heads_of(rows: Iterable[BoardRowLike], groups: Iterable[BoardGroup]) -> dict[int, int]:
    """The first row of each group -> the group."""
    group_of = {chat: group.id for group in groups for chat in group.rows}
    heads: dict[int, int] = {}
    for row in rows:
        group = group_of.get(row.id)
        if group is not None:
            heads.setdefault(group, row.id)
    return {row: group for group, row in heads.items()}


def board_header(
    counts_by_state: Mapping[str, int],
    outcomes: Mapping[str, int],
    now_ms: int,
    *,
    query: Mapping[str, str] | None = None,
    oob: bool = True,
) -> dict[str, str]:
    """Chips per state and the fleet's outcomes of the last hour; ``query`` is the page's own."""
    chips = board_chips(counts_by_state, dict(query or {}))
    chosen = [chip.count for chip in chips if chip.on]
    context = {
        "now": now_ms,
        "oob": oob,
        "chips": chips,
        "matching": sum(chosen) if chosen else sum(counts_by_state.values()),
        "outcomes": outcome_bar({Outcome(name): n for name, n in outcomes.items()}),
    }
    return {
        region: get_template(f"web/regions/{region.replace('-', '_')}.html").render(context)
        for region in BOARD_REGIONS
    }


def board_chips(counts: Mapping[str, int], query: dict[str, str]) -> list[Chip]:
    """Worst state first; a state that nothing is in is left out unless it is the filter."""
    chosen = set(filter(None, query.get("state", "").split(",")))
    chips = []
    for state in State:
        count = int(counts.get(state.value, 0))
        if not count and state.value not in chosen and state is not State.HEALTHY:
            continue
        wanted = chosen ^ {state.value}
        ordered = ",".join(s.value for s in State if s.value in wanted)
        toggled = link(query, state=ordered)
        chips.append(Chip(state.value, states.state(state), count, state.value in chosen, toggled))
    return chips


def chat_regions(
    detail: ChatDetail,
    extras: ChatExtras,
    now_ms: int,
    *,
    operate: bool,
    oob: bool = True,
    only: Iterable[str] | None = None,
) -> dict[str, str]:
    """``chat-<id>-<region>`` -> its element; ``only`` names regions without the prefix."""
    context: dict[str, Any] = chat_context(detail, extras, now_ms, operate=operate)
    context["oob"] = oob
    wanted = CHAT_REGIONS if only is None else tuple(only)
    return {
        f"chat-{extras.chat.id}-{region}": get_template(f"web/regions/chat_{region}.html").render(
            context
        )
        for region in wanted
    }


def command_receipt(command: CommandRow, now_ms: int, *, operate: bool, oob: bool = True) -> str:
    """One command's receipt, ``command-<id>``."""
    context = {"now": now_ms, "oob": oob, "operate": operate, "receipt": receipt_of(command)}
    return get_template("web/regions/receipt.html").render(context)


def agents_table(lines: Iterable[AgentLine], now_ms: int, *, oob: bool = True) -> str:
    """The table of agents, ``agents-table``."""
    context = {"now": now_ms, "oob": oob, "agents": list(lines)}
    return get_template("web/regions/agents_table.html").render(context)
