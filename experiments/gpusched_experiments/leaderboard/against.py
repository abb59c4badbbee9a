"""What an entry is ranked against: recorded runs, if they are runs of the same world."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_experiments.leaderboard.standings import COST, RUN_ROW
from gpusched_experiments.report.cell import Cell
from gpusched_experiments.report.code_version import code_version
from gpusched_experiments.report.record import recorded_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpusched_env.workload import Track
    from gpusched_experiments.report.run import Values

CELLS, ENTRIES = "cells.csv", "entries"
PUBLISHED = Path(__file__).parents[3] / "docs/results/leaderboard"
"""Where a checkout has the published standings; an installed package has none."""
PROBE = "edf"
NEAR = 1e-9
Place = tuple[str, str, str, int]
"""Track, row (run or bound), policy and seed."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded runs.

    Attributes:
        folder: Where they were found; None where there are none.
        code: Version of the code that made them.
        values: What was measured, by place.
    """

    folder: Path | None
    code: str
    values: Mapping[Place, Values]

    def policies(self, track: str, seeds: Iterable[int]) -> tuple[str, ...]:
        """List the policies that ran on a track, on some of these seeds."""
        wanted = set(seeds)
        ran = (place[2] for place in self.values if place[:2] == (track, RUN_ROW) and place[3] in wanted)
        return tuple(dict.fromkeys(ran))


def read_recorded(folder: str | None) -> Recorded:
    """Read the runs of a leaderboard, and of the entries that are kept with it.

    Args:
        folder: Its folder; None for the published one of this checkout, if there is one; `none` for no runs.

    Raises:
        InputError: There is no such folder, or its runs cannot be read.
    """
    if folder == "none" or (folder is None and not (PUBLISHED / CELLS).is_file()):
        return Recorded(None, "", {})
    place = PUBLISHED if folder is None else Path(folder)
    files = [place / CELLS, *sorted(place.glob(f"{ENTRIES}/*/{CELLS}"))]
    values: dict[Place, Values] = {}
    for file in reversed(files):
        values = _read(file) | values
    return Recorded(place, str(recorded_facts(place / "record.json").get("code", "unknown")), values)


def _read(path: Path) -> dict[Place, Values]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            names = list(reader.fieldnames or ())
            measured = names[names.index("seed") + 1 :]
            return {
                (row["track"], row["row"], row["policy"], int(row["seed"])): {n: float(row[n]) for n in measured}
                for row in reader
            }
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            "--against", str(path), f"a file that gpusched leaderboard wrote, or none ({error})"
        ) from error


def check_same_world(recorded: Recorded, tracks: Iterable[Track]) -> str:
    """Check that recorded runs can stand beside runs of this version: a policy costs here what it cost there.

    It is enough that one cheap policy does so on one seed of every track, since it sees all that changed.

    Returns:
        What was compared, as a sentence; empty if the code is the same.

    Raises:
        InputError: They cannot.
    """
    if recorded.code == code_version():
        return ""
    compared = 0
    for track in tracks:
        seeds = [p[3] for p in recorded.values if p[:3] == (track.name, RUN_ROW, PROBE)]
        for seed in seeds[:1]:
            there = float(recorded.values[track.name, RUN_ROW, PROBE, seed][COST])
            here = float(Cell((), track.scenario, PROBE, seed).run()[COST])
            if not math.isclose(there, here, rel_tol=NEAR):
                costs = f"{PROBE} costs {there:,.2f} € there on seed {seed} of {track.name}, and {here:,.2f} € here"
                raise InputError(
                    "--against", str(recorded.folder), f"runs of this version, or none to run them ({costs})"
                )
            compared += 1
    return (
        f"the standings were made by other code; {PROBE} costs here what it did there, on a seed of {compared} tracks"
    )
