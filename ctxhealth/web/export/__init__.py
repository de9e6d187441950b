"""Reports that leave the server: Markdown, charts as files, and a page that stands alone."""

from __future__ import annotations
