"""The printed form of figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.figure import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.figure import Figure

HEADINGS = ("measured", "before", "median", "lowest .. highest", "unit", "target", "met")


def render(title: str, figures: Sequence[Figure]) -> str:
    """Write figures as a table, with their notes below it."""
    rows = [HEADINGS, *(_row(figure) for figure in figures)]
    if not any(figure.before for figure in figures):
        rows = [(row[0], *row[2:]) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    notes = [f"* {figure.name}: {figure.note}" for figure in figures if figure.note]
    rule = "-" * max(len(line) for line in lines)
    return "\n".join(["", title, rule, lines[0], rule, *lines[1:], *notes])


def _row(figure: Figure) -> tuple[str, ...]:
    if figure.median is None:
        return figure.name, figure.before, "-", "", figure.unit, str(figure.target or ""), ""
    spread = f"{short(min(figure.values))} .. {short(max(figure.values))}" if len(figure.values) > 1 else ""
    verdict = {True: "yes", False: "NO", None: ""}[figure.met]
    return figure.name, figure.before, short(figure.median), spread, figure.unit, str(figure.target or ""), verdict
