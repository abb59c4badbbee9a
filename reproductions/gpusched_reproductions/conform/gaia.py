"""GAIA's own program beside our rules: its trace on hourly grams of CO2, in sums and job by job.

Files: signal_NAME.csv, with pai_1k.csv, results.csv and, where there is one, jobs_NAME.csv.gz beside it. Grams relative
to no wait agree within 0.001, mean waits within 0.01 h, dollars within 0.1 %; starts and lengths to the tick. Figures 8
and 10 of the paper are on AU-SA, whose hours may not be shipped; with a signal_AU-SA.csv of one's own the sums of
results.csv and the numbers that the authors' notebook prints are compared, too. Policies without reserved machines also
run in our simulator, and agree with the replay. Wait AWhile is compared with the
program, which finds the optimum with pausing, not with the notebook.
"""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_reproductions.conform.answer import Answer
from gpusched_reproductions.systems.gaia.cluster import POLICIES as SIMULATED
from gpusched_reproductions.systems.gaia.cluster import run
from gpusched_reproductions.systems.gaia.replay import replay
from gpusched_reproductions.systems.gaia.trace import TICK_S, TRACE, read_signal, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpusched_env import Result
    from gpusched_reproductions.systems.gaia.replay import ReplayOfTrace

RESULTS = "results.csv"
SIGNAL = "signal_*.csv"
RESERVED = 9
POLICIES: dict[str, tuple[str, str, int]] = {
    "NoWait": ("no-wait", "no-wait", 0),
    "Lowest-Slot": ("lowest-slot", "lowest-slot", 0),
    "Lowest-Window": ("lowest-window", "lowest-window", 0),
    "Carbon-Time": ("carbon-time", "carbon-time", 0),
    "Ecovisor": ("ecovisor", "ecovisor", 0),
    "Wait AWhile": ("wait-awhile", "wait-awhile", 0),
    "AllWait-Threshold (9 reserved)": ("all-wait", "all-wait-9", RESERVED),
    "RES-First-Carbon-Time (9 reserved)": ("res-first", "res-first-9", RESERVED),
    "NoWait (9 reserved)": ("no-wait", "no-wait-9", RESERVED),
}
"""By the name in results.csv: the policy, its name in jobs_NAME.csv.gz, and reserved machines."""
SIMULATED_WITHIN = 1e-6
RELATIVE, WAIT_H, DOLLARS = 0.001, 0.01, 0.001
NOT_BY_PROGRAM = ("Wait AWhile",)
"""Policies of which the notebook prints another number than the program does."""


def answers(paths: Sequence[Path]) -> Iterator[Answer]:
    """Yield what each policy answers on each signal, ours and theirs."""
    for path in (file for given in paths for file in _files(given)):
        folder, name = path.parent, path.stem.removeprefix("signal_")
        for needed in (TRACE, RESULTS):
            if not (folder / needed).is_file():
                raise InputError("files", str(path), f"a signal with {needed} beside it")
        trace, signal = read_trace(folder / TRACE), read_signal(path)
        rows = _results(folder / RESULTS, name)
        jobs = _jobs(folder / f"jobs_{name}.csv.gz")
        whole = replay(trace, signal, "no-wait").signal_cost.sum()
        for published, (policy, of_jobs, reserved) in POLICIES.items():
            ours = replay(trace, signal, policy, reserved)
            if published in rows and policy in SIMULATED and not reserved:
                yield _simulated(f"{name}, {published}", run(trace, signal, policy), ours)
            if published in rows:
                yield from _sums(f"{name}, {published}", rows[published], ours, ours.signal_cost.sum() / whole)
            if of_jobs in jobs:
                yield _starts(f"{name}, {published}", jobs[of_jobs], ours)


def _simulated(case: str, result: Result, ours: ReplayOfTrace) -> Answer:
    """Compare a run of the shipped policy in the simulator with the replay: the bill, and when jobs first start."""
    first_s = np.full(len(result.start_s), np.inf)
    np.minimum.at(first_s, ours.job, ours.begin_s)
    theirs, own = float(ours.signal_cost.sum()), 1000.0 * result.energy_eur
    moved = int(np.count_nonzero(np.abs(result.start_s - first_s) > 0.01))
    agrees = moved == 0 and abs(own / theirs - 1.0) <= SIMULATED_WITHIN
    return Answer(f"{case}: simulator", f"{theirs:.4f} g", f"{own:.4f} g, {moved} other starts", agrees)


def _sums(case: str, row: dict[str, str], ours: ReplayOfTrace, relative: float) -> Iterator[Answer]:
    compared = [
        ("CO2 relative to no wait", float(row["relative_to_no_wait"]), relative, RELATIVE),
        ("mean wait [h]", float(row["mean_wait_h"]), ours.mean_wait_h, WAIT_H),
        ("cost [$]", float(row["dollar_cost"]), ours.dollars, DOLLARS * float(row["dollar_cost"])),
    ]
    if row["published_relative"] and not case.endswith(NOT_BY_PROGRAM):
        compared.append(("CO2 relative to no wait, notebook", float(row["published_relative"]), relative, RELATIVE))
    for what, theirs, own, within in compared:
        yield Answer(f"{case}: {what}", f"{theirs:.4f}", f"{own:.4f}", abs(own - theirs) <= within)


def _starts(case: str, theirs: set[tuple[int, int, int]], ours: ReplayOfTrace) -> Answer:
    columns = ours.job, ours.begin_s / TICK_S, ours.length_s / TICK_S
    own = {(int(job), round(begin), round(length)) for job, begin, length in zip(*columns, strict=True)}
    same, pieces = len(own & theirs), len(theirs)
    return Answer(
        f"{case}: starts and lengths", f"{pieces} pieces", f"{same} of {len(own)} the same", same == pieces == len(own)
    )


def _results(path: Path, name: str) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row.get("signal") == name]
    if not rows:
        raise InputError("files", str(path), f"a table with rows of the signal {name}")
    return {row["policy"]: row for row in rows}


def _jobs(path: Path) -> dict[str, set[tuple[int, int, int]]]:
    found: dict[str, set[tuple[int, int, int]]] = {}
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                piece = int(row["job"]), int(row["start_tick"]), int(row["length_ticks"])
                found.setdefault(row["policy"], set()).add(piece)
    return found


def _files(given: Path) -> list[Path]:
    if given.is_file():
        return [given]
    found = sorted(given.glob(SIGNAL))
    if not found:
        raise InputError("files", str(given), f"a folder with {SIGNAL}, {TRACE} and {RESULTS}")
    return found
