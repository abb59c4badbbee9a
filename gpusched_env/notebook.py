"""Small HTML tables of values for notebooks, with all markup escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape

CELL = "text-align:left;padding:1px 10px 1px 0;border:0"


def facts_table(title: str, facts: Iterable[tuple[str, object]], below: str = "") -> str:
    rows = "".join(
        f'<tr><th style="{CELL}">{escape(name)}</th><td style="{CELL}">{escape(str(fact))}</td></tr>'
        for name, fact in facts
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{below}</div>"


def dotted_names(values: Mapping[str, object], section: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from dotted_names(value, f"{section}{name}.")
        else:
            yield f"{section}{name}", value
