"""Function views, one module per page."""

from __future__ import annotations
