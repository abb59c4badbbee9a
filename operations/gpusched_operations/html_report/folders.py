"""The report of a folder that one of the commands wrote: a comparison, a run, or an experiment."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_provenance
from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.experiment import VERDICT
from gpusched_experiments.report.record import recorded_facts
from gpusched_experiments.report.table import COUNT, MONEY, PERCENT, RATIO, Column, Table
from gpusched_operations.html_report.costs import standings_drawing
from gpusched_operations.html_report.report_data import Picture, ReportData
from gpusched_operations.html_report.runs import comparison_report, read_json, run_folder_report


def experiment_report(folder: Path) -> ReportData:
    record, page = read_json(folder / "record.json", "reproduce"), folder / "table.md"
    check_provenance(str(folder / "record.json"), record.get("provenance") if isinstance(record, dict) else record)
    if not page.is_file():
        raise InputError(str(page), None, "the tables of a finished experiment; the same command goes on with it")
    heading, _, rest = page.read_text(encoding="utf-8").lstrip().partition("\n")
    question, _, tables = rest.strip().partition("\n\n")
    lines = tables.splitlines(keepends=True)
    verdict = tuple(line.removeprefix(VERDICT).strip() for line in lines if line.startswith(VERDICT))
    tables = "".join(line for line in lines if not line.startswith(VERDICT))
    if not heading.startswith("#"):
        raise InputError(str(page), heading, "a page that begins with a heading, as reproduce writes it")
    # Of a figure's name the SVG file, or else the PNG file; `figure` first.
    files = {path.stem: path for form in ("png", "svg") for path in sorted(folder.glob(f"*.{form}"))}
    pictures = sorted(files.values(), key=lambda path: (path.stem != "figure", path.stem))
    return ReportData(
        title=heading.lstrip("# ").strip(),
        question=question,
        verdict=verdict,
        page=tables,
        pictures=tuple(Picture(path.name, path.read_bytes()) for path in pictures),
        provenance=record["provenance"],
    )


Row = dict[str, str]

POLICIES: tuple[Column[Row], ...] = (
    Column("policy", "policy", lambda row: row["policy"]),
    Column("tracks", "tracks", lambda row: int(row["tracks"]), COUNT),
    Column("first", "first on", lambda row: int(row["first"]), COUNT),
    Column("mean_rank", "mean rank", lambda row: float(row["mean_rank"]) if row["mean_rank"] else None, RATIO),
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


def leaderboard_report(folder: Path) -> ReportData:
    data = experiment_report(folder)
    tables = {name: _rows(folder / name) for name in FILES}
    try:
        policies, tracks = tables["summary.csv"], tables["tracks.csv"]
        made = (Table.of("All tracks", POLICIES, policies), Table.of("Best known cost and bound", TRACKS, tracks))
        drawings = [
            standings_drawing(number, track, [r for r in tables["table.csv"] if r["track"] == track["track"]])
            for number, track in enumerate(tracks)
        ]
    except (ValueError, TypeError) as error:
        raise InputError(str(folder), str(error), "tables as gpusched leaderboard writes them") from error
    _, heading, rest = data.page.partition(f"### {LAST}")
    question = _LINK.sub(r"\1", data.question).replace("`", "")
    return replace(
        data, question=question, tables=made, verdict=(_verdict(policies),), page=heading + rest, pictures=(),
        drawings=tuple(drawings), marked=policies[0]["policy"],
    )  # fmt: skip


def estimate_of(row: Row, name: str) -> Estimate | None:
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


def _verdict(policies: list[Row]) -> str:
    best = policies[0]
    ratio, worst = float(best["mean_ratio"]), float(best["worst_ratio"])
    at_worst = f", at worst {worst:.2f} times ({best['worst_track']})" if math.isfinite(worst) else ""
    return (
        f"{best['policy']} is on place 1 of {len(policies)}: {ratio:.2f} times the cost of the best, as a mean over "
        f"{best['tracks']} track{'s' if best['tracks'] != '1' else ''}{at_worst}; first on {best['first']}."
    )


KINDS: Mapping[str, Callable[[Path], ReportData]] = {
    "results.json": comparison_report,
    "run.json": run_folder_report,
    "record.json": experiment_report,
}
"""What reads a folder, by the file that shows what it is."""


def folder_report(folder: str | Path) -> ReportData:
    """Read what a command wrote to this folder: `compare`, `simulate`, `reproduce` or `leaderboard`.

    Raises:
        InputError: It is none of these, or one of its files cannot be read.
    """
    source = Path(folder)
    for name, read in KINDS.items():
        if (source / name).is_file():
            is_leaderboard = recorded_facts(source / "record.json").get("experiment") == "leaderboard"
            try:
                return leaderboard_report(source) if is_leaderboard else read(source)
            except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, csv.Error) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(str(folder), repr(error), f"files as they were beside {name}") from error
    allowed = "a folder that compare, simulate --out, reproduce or leaderboard wrote: one with"
    raise InputError("folder", str(folder), f"{allowed} {', '.join(KINDS)}")
