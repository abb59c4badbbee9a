"""How an instance's JSON is laid out in lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLES = ("gpu_types", "nodes", "configurations", "jobs")
"""Fields of an instance file that are tables of columns."""


def json_layout(document: Mapping[str, Any]) -> str:
    """Give the JSON text with one line per field, column and distribution: it can be read, and compared by line."""
    parts = []
    for name, value in document.items():
        text = _compact(value)
        if name in TABLES:
            text = (
                "{\n" + ",\n".join(f"  {_compact(key)}: {_compact(column)}" for key, column in value.items()) + "\n }"
            )
        elif name == "distributions":
            text = "[\n" + ",\n".join(f"  {_compact(entry)}" for entry in value) + "\n ]"
        elif name == "interference" and value is not None:
            text = _interference_text(value)
        parts.append(f" {_compact(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _interference_text(model: Mapping[str, Any]) -> str:
    """Give the table, which comes first, with one line per GPU type."""
    (name, table), *rest = model.items()
    rows = ",\n".join(f"  {_compact(of_type)}" for of_type in table)
    return f'{{"{name}":[\n' + rows + "\n ]" + "".join(f",{_compact(key)}:{_compact(v)}" for key, v in rest) + "}"


def _compact(value: Any) -> str:
    # Python writes the shortest decimal that reads back as the same float: nothing is lost.
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
