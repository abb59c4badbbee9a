"""What an entry is ranked against: recorded runs, if they are runs of the same world."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from gpusched_baselines.registry import POLICIES
from gpusched_env.errors import InputError
from gpusched_env.workload import Track
from gpusched_experiments.leaderboard.standings import COST, RUN_ROW
from gpusched_experiments.report.cell import Cell
from gpusched_experiments.report.code_version import code_version
from gpusched_experiments.report.record import recorded_facts
from gpusched_experiments.report.run import Values

CELLS, PACKED, RECORD, ENTRIES = "cells.csv", "cells.csv.gz", "record.json", "entries"
PUBLISHED = Path(__file__).parent / "published"
"""Where the package has the published standings, which `scripts/publish_leaderboard.py` writes."""
PROBE = "edf"
CHEAP = (PROBE, *(name for name, policy in POLICIES.items() if policy.compiled and not policy.slow))
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
    """Read the runs of a leaderboard, and of the entries that are kept with it: of each its own, under its own name.

    Args:
        folder: Its folder; None for the published one; `none` for no runs.

    Raises:
        InputError: There is no such folder, or its runs cannot be read.
    """
    if folder == "none":
        return Recorded(None, "", {})
    place = PUBLISHED if folder is None else Path(folder)
    values = _read(place / (PACKED if folder is None else CELLS))
    published = {policy for _, _, policy, _ in values}
    for file in sorted(place.glob(f"{ENTRIES}/*/{CELLS}")):
        if (name := file.parent.name) not in published:
            values |= {where: of for where, of in _read(file).items() if where[1:3] == (RUN_ROW, name)}
    return Recorded(place, str(recorded_facts(place / RECORD).get("code", "unknown")), values)


def _read(path: Path) -> dict[Place, Values]:
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
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

    It is enough that one cheap policy, `edf` if it is there, does so on one seed of every track that has recorded runs,
    since it sees all that changed.

    Returns:
        What was compared, as a sentence; empty if the code is the same, or nothing is recorded of these tracks.

    Raises:
        InputError: They cannot, or none of a track's recorded policies is cheap.
    """
    if recorded.code == code_version():
        return ""
    compared: list[str] = []
    for track in tracks:
        if any(place[0] == track.name for place in recorded.values):
            ran = {place[2] for place in recorded.values if place[:2] == (track.name, RUN_ROW)}
            policy = next((name for name in CHEAP if name in ran), None)
            if policy is None:
                _refuse(recorded, f"of {track.name} it has no run of {PROBE}, or of another policy that is quick")
            _compare(recorded, track, policy)
            compared.append(policy)
    names = ", ".join(dict.fromkeys(compared))
    said = f"the standings were made by other code; {names} costs here what it did there, on a seed of {len(compared)}"
    return f"{said} tracks" if compared else ""


def _compare(recorded: Recorded, track: Track, policy: str) -> None:
    """Check that a policy costs here what was recorded of it, on a seed of a track."""
    seed = next(place[3] for place in recorded.values if place[:3] == (track.name, RUN_ROW, policy))
    there = float(recorded.values[track.name, RUN_ROW, policy, seed][COST])
    here = float(Cell((), track.scenario, policy, seed).run()[COST])
    if not math.isclose(there, here, rel_tol=NEAR):
        costs = f"{policy} costs {there:,.2f} € there on seed {seed} of {track.name}, and {here:,.2f} € here"
        _refuse(recorded, costs)


def _refuse(recorded: Recorded, why: str) -> NoReturn:
    raise InputError("--against", str(recorded.folder), f"runs of this version, or none to run them ({why})")
