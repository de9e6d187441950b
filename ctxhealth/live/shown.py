"""What one browser has been sent, so that only what differs is sent again."""

from __future__ import annotations

from collections.abc import Collection, Mapping


class Shown:
    """Remembers a hash per region, not the region: 64 bits against 2 kB."""

    def __init__(self) -> None:
        self._hashes: dict[str, int] = {}

    def __contains__(self, region: str) -> bool:
        return region in self._hashes

    def differing(self, regions: Mapping[str, str]) -> list[str]:
        """Fragments whose text is not what this browser has; they count as sent."""
        fresh = []
        for region, html in regions.items():
            mark = hash(html)
            if self._hashes.get(region) != mark:
                self._hashes[region] = mark
                fresh.append(html)
        return fresh

    def keep(self, regions: Collection[str]) -> None:
        """Forget every other region."""
        for region in self._hashes.keys() - set(regions):
            del self._hashes[region]
