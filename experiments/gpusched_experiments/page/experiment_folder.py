"""The report of an experiment's folder: what `reproduce` and `leaderboard` wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_experiments.page.report_data import Picture, ReportData

if TYPE_CHECKING:
    from pathlib import Path


def experiment_report(folder: Path) -> ReportData:
    """Make the report: its page with all tables, its figures, and its record.

    Raises:
        InputError: The record is not whole, or there are no tables yet.
    """
    record, page = read_record(folder / "record.json"), folder / "table.md"
    if not page.is_file():
        raise InputError(str(page), None, "the tables of a finished experiment; the same command goes on with it")
    heading, _, rest = page.read_text(encoding="utf-8").lstrip().partition("\n")
    question, _, tables = rest.strip().partition("\n\n")
    if not heading.startswith("#"):
        raise InputError(str(page), heading, "a page that begins with a heading, as reproduce writes it")
    return ReportData(
        title=heading.lstrip("# ").strip(),
        question=question,
        page=tables,
        pictures=tuple(Picture(path.name, path.read_bytes()) for path in _pictures(folder)),
        provenance=record["provenance"],
    )


def read_record(path: Path) -> dict[str, Any]:
    """Read how an experiment was made.

    Raises:
        InputError: The file is not whole.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(str(path), str(error), "a whole JSON file, as gpusched reproduce writes it") from error
    if not isinstance(record, dict) or not isinstance(record.get("provenance"), dict):
        raise InputError(f"{path}: provenance", None, "what gpusched reproduce writes there")
    return record


def _pictures(folder: Path) -> list[Path]:
    """List the figures, `figure` first; of a name the SVG file, or else the PNG file."""
    vectors = {path.stem: path for path in sorted(folder.glob("*.svg"))}
    pixels = {path.stem: path for path in sorted(folder.glob("*.png"))}
    return sorted((pixels | vectors).values(), key=lambda path: (path.stem != "figure", path.stem))
