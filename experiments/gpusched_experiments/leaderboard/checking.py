"""Checking an entry before it is run: it loads, decides on a small workload as it must, and the same every time."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.audit import audit
from gpusched_env.errors import InputError
from gpusched_env.formats import write_run
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.untrusted.process import Process
from gpusched_experiments.untrusted.remote_policy import RemotePolicy, misfit, policy_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.simulator import Result
    from gpusched_env.workload import Scenario, Track
    from gpusched_experiments.untrusted.entry import Entry
    from gpusched_experiments.untrusted.limits import Limits

SMALL, JOBS, SEED = "tiny", 10, 0


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of an entry that passed.

    Attributes:
        lacking: What this system cannot protect from, a sentence each.
        misfits: Why it cannot decide on a track, by the track's name; no others are in it.
    """

    lacking: tuple[str, ...]
    misfits: dict[str, str]


def check_entry(entry: Entry, limits: Limits, tracks: Sequence[Track]) -> Checked:
    """Run an entry on a small workload: twice in one process and once in another, and audit what came out.

    Raises:
        EntryError: It is no policy, breaks a limit, or decides what cannot be, or not always the same.
        InputError: It can decide on no track.
    """
    with Process(entry, limits) as process:
        misfits = {track.name: misfit(process, track.scenario) for track in tracks}
        fitting = [track for track in tracks if misfits[track.name] is None]
        if not fitting:
            raise InputError(
                "--tracks", ",".join(misfits), f"one that {entry.name} can decide on ({misfits.popitem()[1]})"
            )
        small = _small(process, fitting[0])
        first = _run(process, small)
        found = _audited(first)
        if found:
            raise process.wrong(f"the audit of a small run found a difference: {found}")
        if not _same(first, _run(process, small)):
            raise process.wrong(
                "decides otherwise when it is run again: it keeps something of a run, or draws without rng"
            )
        lacking = process.lacking
    with Process(entry, limits) as another:
        if not _same(first, _run(another, small)):
            raise another.wrong("decides otherwise in another process: it draws without rng")
    return Checked(lacking, {name: why for name, why in misfits.items() if why is not None})


def _small(process: Process, track: Track) -> Scenario:
    """Choose a small workload: a small scenario if the entry can decide on it, else a few jobs of a track."""
    small = load_scenario(SMALL)
    return small if misfit(process, small) is None else track.scenario.replace({"jobs.count": JOBS})


def _run(process: Process, scenario: Scenario) -> Result:
    instance = make_instance(scenario, SEED)
    return simulate(instance, RemotePolicy(process, scenario, SEED), seed=policy_seed(SEED))


def _audited(result: Result) -> str:
    """Give the first difference that the audit finds; an empty text if there is none."""
    with tempfile.TemporaryDirectory(prefix="gpusched-") as folder:
        run = Path(folder) / "run"
        write_run(result, run)
        return next((str(each) for each in audit(run)), "")


def _same(one: Result, other: Result) -> bool:
    costs = (one.energy_eur, one.tardiness_eur) == (other.energy_eur, other.tardiness_eur)
    return costs and np.array_equal(one.log, other.log)
