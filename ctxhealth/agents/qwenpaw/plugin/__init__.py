"""What runs inside QwenPaw. QwenPaw loads ``plugin.py``; everything else is imported relatively."""

from __future__ import annotations
