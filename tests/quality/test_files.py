"""Templates, vendored files and texts: what a reviewer would otherwise look for by hand."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.quality.sources import ROOT, project_files, python_files, relative, tree

VENDORED = re.compile(r"^\| (\S+) \| (\S+) \| (\S+) \| (\S+) \| ([0-9a-f]{64}) \|$", re.MULTILINE)
LINES = 450
# Declarations alone, read by looking up and not from top to bottom.
DECLARATIONS = {"ctxhealth/core/model.py", "ctxhealth/wire/events.py"}
FUNCTION_LINES = 70
OWN_TEXT = {".py", ".html", ".md", ".toml", ".txt", ".css", ".js", ".json", ".yml", ".jsonl", ""}


def templates() -> list[str]:
    return [relative(path) for path in project_files() if path.suffix == ".html"]


def vendored() -> dict[str, str]:
    """Path to sha256, as static/vendor/VENDOR.md lists them."""
    text = (ROOT / "static/vendor/VENDOR.md").read_text(encoding="utf-8")
    return {match[1]: match[5] for match in VENDORED.finditer(text)}


def test_vendored_files_are_the_ones_listed() -> None:
    listed = vendored()
    assert listed
    for name, digest in listed.items():
        assert hashlib.sha256((ROOT / name).read_bytes()).hexdigest() == digest, name


def test_every_vendored_file_is_listed() -> None:
    present = {
        relative(path)
        for path in project_files()
        if "vendor" in path.relative_to(ROOT).parts and path.suffix in {".js", ".css"}
    }
    assert present == set(vendored())


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        (r"(?:src|href|action)\s*=\s*[\"'](?:https?:)?//", "loads from another host"),
        (r"\|\s*safe\b|\bautoescape\s+off\b|\bsafeseq\b", "switches escaping off"),
        (r"<script(?![^>]*\bsrc=)[^>]*>", "holds an inline script"),
        (r"<style\b|\sstyle\s*=", "holds an inline style"),
        (r"\son[a-z]+\s*=\s*[\"']|hx-on\b", "holds an inline handler"),
    ],
)
def test_no_template(pattern: str, what: str) -> None:
    names = templates()
    assert names
    guilty = [n for n in names if re.search(pattern, (ROOT / n).read_text(encoding="utf-8"))]
    assert guilty == [], f"a template {what}"


# Escapes what it renders itself; tests/web/test_notes_in_markdown.py holds it to that.
RENDERER = "ctxhealth/web/markdown.py"


def test_no_python_declares_agent_text_safe() -> None:
    guilty = [
        relative(path)
        for path in python_files()
        if relative(path) != RENDERER
        and re.search(r"\bmark_safe\b|\bSafeString\((?!\"\")", path.read_text(encoding="utf-8"))
    ]
    assert guilty == []


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    marks = re.compile(
        "/" + r"work/(?:main|shared)\b|/" + r"root/|/" + r"opt/pypi|/" + r"tmp/briefs"
    )
    guilty = [
        relative(path)
        for path in project_files()
        if path.suffix in OWN_TEXT
        and "vendor" not in path.parts
        and marks.search(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert guilty == []


def test_files_stay_small_enough_to_read() -> None:
    long = {
        relative(path): count
        for path in python_files()
        if "migrations" not in path.parts
        and relative(path) not in DECLARATIONS
        and (count := len(path.read_text(encoding="utf-8").splitlines())) > LINES
    }
    assert long == {}


def test_functions_stay_small_enough_to_read() -> None:
    import ast

    long = {
        f"{relative(path)}:{node.lineno} {node.name}": length
        for path in python_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}
