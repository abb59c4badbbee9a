"""When all of 100 to 700 jobs are done that are there at the beginning: first in, first out, and Gavel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.gavel import Gavel
from gpusched_reproductions.systems.gavel import published
from gpusched_reproductions.systems.gavel.as_run import fifo_as_run
from gpusched_reproductions.systems.gavel.measure import makespan_h
from gpusched_reproductions.systems.gavel.workload import cluster, drawn_jobs
from gpusched_reproductions.systems.store import Check, Findings, Part

if TYPE_CHECKING:
    from gpusched_env.simulator import Policy

SEEDS = (0, 1, 2)
SHARE = 0.02  # by which a mean may differ
QUICK_H = 2.0  # the same where one number of jobs is run


def mean_makespan_h(policy: Policy, jobs: int) -> float:
    """Give the mean makespan [h] of so many jobs over the seeds."""
    return float(np.mean([makespan_h(cluster(drawn_jobs(s, jobs, None, True), "gavel"), policy) for s in SEEDS]))


def run(quick: bool) -> Findings:
    """Compare makespans; quickly, those of Gavel with 100 jobs."""
    gavel = Gavel("makespan", name="gavel-makespan")
    if quick:
        what, there = "Gavel, makespan of 100 jobs [h]", published.GAVEL_MAKESPAN_H[100]
        return Findings((Check.around(what, mean_makespan_h(gavel, 100), there, QUICK_H, published.MAKESPAN),))
    fifo = Gavel(fifo_as_run, aware=False, idle_too=False, name="fifo-as-run")
    ours: dict[str, dict[int, float]] = {}
    checks = []
    for name, policy, theirs in (
        ("FIFO", fifo, published.FIFO_MAKESPAN_H),
        ("Gavel", gavel, published.GAVEL_MAKESPAN_H),
    ):
        ours[name] = {jobs: mean_makespan_h(policy, jobs) for jobs in theirs}
        for jobs, hours in ours[name].items():
            what = f"{name}, makespan of {jobs} jobs [h]"
            checks.append(Check.within(what, hours, theirs[jobs], SHARE, published.MAKESPAN))
    ratio = published.FIFO_MAKESPAN_H[500] / published.GAVEL_MAKESPAN_H[500]
    what = "FIFO / Gavel, makespan of 500 jobs"
    checks.append(Check(what, ours["FIFO"][500] / ours["Gavel"][500], 2.4, 2.6, ratio, published.MAKESPAN))
    return Findings(tuple(checks))


MAKESPAN = Part("gavel", "makespan", "Makespan of jobs that are all there: our simulator and Gavel's own", run)
