"""Small real wheels and a folder to install them from, so that no test needs an index."""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from pathlib import Path


def make_wheel(folder: Path, name: str, *, files: int = 1) -> str:
    """A wheel `name` 1.0 with `files` modules; returns its requirement line with its hash."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    contents = {f"{name}/__init__.py": b"value = 1\n"}
    contents |= {f"{name}/part{number}.py": b"# a part\n" * 50 for number in range(files - 1)}
    contents[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()
    contents[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(
        f"{file},{_record_hash(data)},{len(data)}\n" for file, data in contents.items()
    )
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(path, "w") as archive:
        for file, data in contents.items():
            archive.writestr(file, data)
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def _record_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def pip_environment(**settings: str) -> dict[str, str]:
    """The shell's environment without any of pip's settings but those given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, **settings}


def from_folder(folder: Path) -> dict[str, str]:
    """pip installs from `folder` and asks no index."""
    return pip_environment(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder))
