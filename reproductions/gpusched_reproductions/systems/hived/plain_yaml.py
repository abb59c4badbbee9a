"""As much of YAML as a list of cells needs: mappings, lists and plain values, by indentation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Line = tuple[int, str]


def read_yaml(path: Path) -> Any:
    """Read a file of mappings and lists in blocks, whose values are words, whole numbers, booleans or null."""
    lines: list[Line] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        code = re.sub(r"(^|\s)#.*", "", text).rstrip()
        if not code.strip():
            continue
        indent = len(code) - len(code.lstrip())
        content = code.strip()
        while content.startswith("- "):  # an entry of a list is a line of its own, and what it holds stands deeper
            lines.append((indent, "-"))
            rest = content[2:].lstrip()
            indent, content = indent + len(content) - len(rest), rest
        lines.append((indent, content))
    return _block(lines, 0)[0]


def _block(lines: list[Line], at: int) -> tuple[Any, int]:
    """Give the value that begins at a line, and the line after it."""
    indent, content = lines[at]
    if content == "-":
        entries = []
        while at < len(lines) and lines[at] == (indent, "-"):
            entry, at = _block(lines, at + 1)
            entries.append(entry)
        return entries, at
    if ":" not in content:
        return _value(content), at + 1
    table: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent and lines[at][1] != "-":
        name, _, text = lines[at][1].partition(":")
        at += 1
        below = at < len(lines) and (lines[at][0] > indent or lines[at] == (indent, "-"))
        if text.strip() or not below:
            table[name] = _value(text.strip())
        else:
            table[name], at = _block(lines, at)
    return table, at


def _value(text: str) -> Any:
    known = {"": None, "null": None, "true": True, "false": False}
    if text in known:
        return known[text]
    return int(text) if text.isdigit() else text
