"""One chat.json per chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from helpers import files


def get_chat_folder_path(context: str) -> str:
    return files.get_abs_path("usr/chats", context)


def save_tmp_chat(context: Any) -> None:
    folder = Path(get_chat_folder_path(context.id))
    folder.mkdir(parents=True, exist_ok=True)
    history = json.dumps(context.agent0.history.to_dict())
    (folder / "chat.json").write_text(json.dumps({"id": context.id, "history": history}))
