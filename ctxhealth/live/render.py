"""Fragments, rendered once per (region, chat, version) however many browsers show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ctxhealth.live.caching import Recent
from ctxhealth.live.chats import ChatView
from ctxhealth.live.reads import Reads
from ctxhealth.store import queries
from ctxhealth.store.clock import now_ms
from ctxhealth.store.queries import BoardRow
from ctxhealth.store.queries.board_groups import BoardGroup
from ctxhealth.web import fragments
from ctxhealth.web.agent_rows import agent_lines

ROWS = 10_000
CHATS = 100
HEADERS = 200


RowKey = tuple[int, int, str, bool, bool]


def _key(row: BoardRow, operate: bool) -> RowKey:
    """Everything that a row's fragment is made of."""
    return row.id, row.version, row.owner, row.grouped, operate


class Renderer:
    """Renders on its own thread. Viewers and operators see different fragments."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.rendered = 0
        self._rows: Recent[RowKey, str] = Recent(ROWS)
        self._headers: Recent[tuple[object, ...], dict[str, str]] = Recent(HEADERS)
        self._chats: Recent[tuple[ChatView, bool], dict[str, str]] = Recent(CHATS)

    async def rows(self, rows: Iterable[BoardRow], *, operate: bool) -> dict[str, str]:
        """``row-<id>`` -> its fragment, in the order given."""
        wanted = list(rows)
        found = [self._rows.get(_key(row, operate)) for row in wanted]
        if any(html is None for html in found):
            return await self.reads.render(lambda: self._render(wanted, operate))
        return {f"row-{row.id}": html or "" for row, html in zip(wanted, found, strict=True)}

    def _render(self, rows: list[BoardRow], operate: bool) -> dict[str, str]:
        """On the rendering thread, where a browser that came later finds the cache filled."""
        regions: dict[str, str] = {}
        now = now_ms()
        for row in rows:
            key = _key(row, operate)
            html = self._rows.get(key)
            if html is None:
                html = fragments.board_rows([row], now, operate=operate)[f"row-{row.id}"]
                self._rows.put(key, html)
                self.rendered += 1
            regions[f"row-{row.id}"] = html
        return regions

    async def groups(self, groups: Sequence[BoardGroup], *, alone: bool) -> dict[str, str]:
        """``group-<id>`` -> its line."""
        if not groups:
            return {}
        now = now_ms()
        return await self.reads.render(lambda: fragments.board_groups(groups, now, alone=alone))

    async def chat(self, view: ChatView, *, operate: bool) -> dict[str, str]:
        """``chat-<id>-<region>`` -> its fragment, rendered once per loaded view."""
        regions = self._chats.get((view, operate))
        if regions is None:
            regions = await self.reads.render(lambda: self._render_chat(view, operate))
        return regions

    def _render_chat(self, view: ChatView, operate: bool) -> dict[str, str]:
        regions = self._chats.get((view, operate))
        if regions is None:
            regions = fragments.chat_regions(view.detail, view.extras, now_ms(), operate=operate)
            self._chats.put((view, operate), regions)
            self.rendered += 1
        return regions

    async def agents(self, text: str = "") -> dict[str, str]:
        """``text``: only agents whose name or runtime holds it."""
        lines = await self.reads.query(lambda: agent_lines(queries.agents_list(text=text)))
        now = now_ms()
        html = await self.reads.render(lambda: fragments.agents_table(lines, now))
        return {"agents-table": html}

    async def header(
        self,
        counts: Mapping[str, int],
        outcomes: Mapping[str, int],
        query: Mapping[str, str],
    ) -> dict[str, str]:
        """The same numbers under the same filters are drawn once, whoever shows them."""
        key = tuple(tuple(sorted(each.items())) for each in (counts, outcomes, query))
        regions = self._headers.get(key)
        if regions is None:
            now = now_ms()
            regions = await self.reads.render(
                lambda: fragments.board_header(counts, outcomes, now, query=query)
            )
            self._headers.put(key, regions)
        return regions
