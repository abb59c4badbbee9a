"""The report of a leaderboard's folder: who stands where over all tracks, and a figure for each."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_experiments.page.costs import standings_drawing
from gpusched_experiments.page.experiment_folder import experiment_report
from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.record import recorded_facts
from gpusched_experiments.report.table import COUNT, MONEY, PERCENT, RATIO, Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpusched_experiments.page.report_data import ReportData

Row = dict[str, str]

POLICIES: tuple[Column[Row], ...] = (
    Column("policy", "policy", lambda row: row["policy"]),
    Column("tracks", "tracks", lambda row: int(row["tracks"]), COUNT),
    Column("first", "first on", lambda row: int(row["first"]), COUNT),
    Column("mean_rank", "mean rank", lambda row: float(row["mean_rank"]), RATIO),
    Column("mean_ratio", "cost / best", lambda row: estimate_of(row, "mean_ratio"), RATIO, interval=True),
    Column("worst_ratio", "at worst", lambda row: float(row["worst_ratio"]), RATIO),
    Column("worst_track", "worst track", lambda row: row["worst_track"]),
)
TRACKS: tuple[Column[Row], ...] = (
    Column("track", "track", lambda row: row["track"]),
    Column("seeds", "seeds", lambda row: int(row["seeds"]), COUNT),
    Column("best_eur", "best known €", lambda row: float(row["best_eur"]), MONEY),
    Column("best_policy", "held by", lambda row: row["best_policy"]),
    Column("second_policy", "next", lambda row: row["second_policy"]),
    Column("second_ratio", "next / best", lambda row: estimate_of(row, "second_ratio"), RATIO, interval=True),
    Column("bound_eur", "bound €", lambda row: float(row["bound_eur"]), MONEY),
    Column("gap", "best above bound", lambda row: estimate_of(row, "gap"), PERCENT, interval=True),
)
FILES: Mapping[str, tuple[str, ...]] = {
    "summary.csv": tuple(column.name for column in POLICIES),
    "tracks.csv": tuple(column.name for column in TRACKS),
    "table.csv": ("track", "rank", "policy", "seeds", "total_eur", "to_best", "to_best_low", "to_best_high"),
}
"""What the page reads, and columns that each must have."""
LAST = "What knowing the distribution is worth"
"""From which heading on the tables of `table.md` stand on the page as they are; those before have figures here."""


_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def is_leaderboard(folder: Path) -> bool:
    """Say whether `gpusched leaderboard` wrote this folder."""
    return recorded_facts(folder / "record.json").get("experiment") == "leaderboard"


def leaderboard_report(folder: Path) -> ReportData:
    """Make the report of a leaderboard.

    Raises:
        InputError: A file is missing or not whole.
    """
    data = experiment_report(folder)
    tables = {name: _rows(folder / name) for name in FILES}
    try:
        policies, tracks = tables["summary.csv"], tables["tracks.csv"]
        made = (Table.of("All tracks", POLICIES, policies), Table.of("Best known cost and bound", TRACKS, tracks))
        entry = _entry(folder)
        drawings = [
            standings_drawing(number, track, [r for r in tables["table.csv"] if r["track"] == track["track"]], entry)
            for number, track in enumerate(tracks)
        ]
    except (ValueError, TypeError) as error:
        raise InputError(str(folder), str(error), "tables as gpusched leaderboard writes them") from error
    question = _LINK.sub(r"\1", data.question).replace("`", "")
    return replace(
        data, question=question, tables=made, verdict=_verdict(policies, entry), page=_last(data.page), pictures=(),
        drawings=tuple(drawings), marked=entry or policies[0]["policy"],
    )  # fmt: skip


def estimate_of(row: Row, name: str) -> Estimate | None:
    """Give an estimate of a row with its interval, if it has one; None where there is nothing."""
    if not row[name]:
        return None
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return Estimate(float(row[name]), (float(low), float(high)) if low and high else None, 0)


def _rows(path: Path) -> list[Row]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), str(error), "a table of a leaderboard") from error
    missing = [name for name in FILES[path.name] if not rows or rows[0].get(name) is None]
    if missing:
        raise InputError(str(path), None, f"rows with a column {missing[0]}")
    return rows


def _entry(folder: Path) -> str:
    """Give the name of the policy that was submitted, if one was."""
    entry = recorded_facts(folder / "record.json").get("entry")
    return str(entry.get("name", "")) if isinstance(entry, dict) else ""


def _verdict(policies: list[Row], entry: str) -> tuple[str, ...]:
    """Say who is first over all tracks, and where the submitted policy stands."""
    named = {row["policy"]: (place, row) for place, row in enumerate(policies, 1)}
    said = []
    for name in dict.fromkeys((policies[0]["policy"], entry)):
        if name not in named:
            continue
        place, row = named[name]
        what = f"{name}, which was submitted," if name == entry else name
        ratio, worst = float(row["mean_ratio"]), float(row["worst_ratio"])
        at_worst = f", at worst {worst:.2f} times ({row['worst_track']})" if math.isfinite(worst) else ""
        said.append(
            f"{what} is on place {place} of {len(policies)}: {ratio:.2f} times the cost of the best, as a mean over "
            f"{row['tracks']} track{'s' if row['tracks'] != '1' else ''}{at_worst}; first on {row['first']}."
        )
    return tuple(said)


def _last(page: str) -> str:
    """Give the tables that have no place of their own on the page."""
    _, heading, rest = page.partition(f"### {LAST}")
    return heading + rest
