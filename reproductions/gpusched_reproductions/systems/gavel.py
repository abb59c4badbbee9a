"""Gavel (OSDI 2020): our event loop and our port of its policies beside the figures of its authors' simulator.

What its authors got are outputs stored in the notebooks of their repository, github.com/stanford-futuredata/gavel,
commit c4fa400, `scheduler/notebooks/figures/evaluation`: `makespan.ipynb`, `continuous_jobs.ipynb` and
`continuous_jobs_multigpu.ipynb`, cell 10 of each. The makespans are means of three seeds, the others are of seed 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.gavel.packed import GavelPacked
from gpusched_baselines.gavel.policy import Gavel
from gpusched_experiments.report.chart import Chart, Panel, Series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.checks import Check, Measured, Part
from gpusched_reproductions.systems.gavel_workload import (
    cluster,
    drawn_jobs,
    fifo_as_run,
    makespan_h,
    mean_completion_h,
    step_speeds,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MAKESPAN_CELL = "makespan.ipynb, cell 10"
SINGLE_GPU_CELL = "continuous_jobs.ipynb, cell 10"
MULTI_GPU_CELL = "continuous_jobs_multigpu.ipynb, cell 10"

# Makespan [h], mean of seeds 0, 1 and 2, by the number of jobs that are there at the beginning.
FIFO_MAKESPAN_H = {100: 182.32, 300: 295.56, 500: 426.58, 700: 619.52}
GAVEL_MAKESPAN_H = {100: 161.16, 300: 161.16, 500: 169.42, 700: 244.23}

# Mean time from submission to completion [h], seed 0, jobs 4000 to 4999, by arrivals per hour.
SINGLE_H = {
    "FIFO on the fastest type": {4.0: 17.08, 4.8: 22.24},
    "LAS": {4.0: 23.49, 4.8: 35.79, 5.6: 95.99},
    "Gavel's LAS": {4.0: 16.82, 4.8: 18.97, 5.6: 28.96},
    "Gavel's LAS with space sharing": {4.0: 16.96, 4.8: 18.67, 5.6: 19.64},
    "Gavel's finish-time fairness": {4.0: 17.57, 4.8: 20.43},
    "AlloX": {4.0: 17.13, 4.8: 20.92, 5.6: 25.32},
    "LAS with Gandiva's space sharing": {4.0: 18.88, 4.8: 30.46, 5.6: 42.54},
}
MULTI_H = {
    "FIFO on the fastest type": {2.0: 27.68},
    "LAS": {2.0: 28.91, 2.4: 38.71, 2.6: 70.54},
    "Gavel's LAS": {2.0: 21.90, 2.4: 30.03, 2.6: 36.44},
    "Gavel's finish-time fairness": {2.0: 21.80},
}
IN_ORDER = (0, 1, 2)  # V100, P100, K80: the order in which their rounds fill the types, unless speeds are not known
POLICIES: Mapping[str, Gavel | GavelPacked] = {
    "FIFO on the fastest type": Gavel("fifo", name="gavel:fifo", type_order=IN_ORDER),
    "LAS": Gavel(aware=False, name="gavel:las-agnostic"),
    "Gavel's LAS": Gavel(type_order=IN_ORDER),
    "Gavel's LAS with space sharing": GavelPacked(type_order=IN_ORDER),
    "Gavel's finish-time fairness": Gavel("finish-time", name="gavel:finish-time", type_order=IN_ORDER),
    "AlloX": Gavel("allox", name="allox", type_order=IN_ORDER),
    "LAS with Gandiva's space sharing": GavelPacked("gandiva", name="gandiva", type_order=IN_ORDER),
}
JOBS = 24_000  # more than come until job 4999 is done
PACKED_JOBS = 10_000  # the same where jobs take less time; the memory of pairs is in proportion to them
DIGIT_H, SINGLE_SHARE, WIDER_SHARE = 0.01, 0.01, 0.03  # as demanded: 1 % of one GPU, 3 % of several and of pairs


def completion_h(name: str, per_hour: float, multi_gpu: bool) -> float:
    """Return the mean time to completion [h] of the jobs that are measured, seed 0."""
    policy = POLICIES[name]
    pairs = isinstance(policy, GavelPacked)
    jobs = drawn_jobs(0, PACKED_JOBS if pairs else JOBS, per_hour, multi_gpu)
    return mean_completion_h(cluster(jobs, "gavel", pairs=pairs), replace(policy, steps=step_speeds()))


def _check(name: str, ours: float, there: dict[str, dict[float, float]], rate: float, share: float, cell: str) -> Check:
    what, published = f"{name}, {rate} jobs/h [h]", there[name][rate]
    if name.startswith("FIFO"):
        return Check.around(what, ours, published, DIGIT_H, cell)
    return Check.within(what, ours, published, share, cell)


def run_single(quick: bool) -> Measured:
    """Compare jobs of one GPU; quickly, first in, first out with four an hour, which must agree to the digit."""
    points = [(name, rate) for name, there in SINGLE_H.items() for rate in there]
    ours = {point: completion_h(*point, False) for point in (points[:1] if quick else points)}
    checks = []
    for (name, rate), hours in ours.items():
        share = WIDER_SHARE if isinstance(POLICIES[name], GavelPacked) or name == "AlloX" else SINGLE_SHARE
        checks.append(_check(name, hours, SINGLE_H, rate, share, SINGLE_GPU_CELL))
    if quick:
        return Measured(tuple(checks))
    for rate, low, high in ((4.8, 1.84, 1.94), (5.6, 3.0, 3.6)):
        ratio = SINGLE_H["LAS"][rate] / SINGLE_H["Gavel's LAS"][rate]
        what = f"LAS / Gavel's LAS, {rate} jobs/h"
        mine = ours["LAS", rate] / ours["Gavel's LAS", rate]
        # a ratio of two rows above is not counted again
        checks.append(Check(what, mine, low, high, ratio, SINGLE_GPU_CELL, "own formula"))
    return Measured(tuple(checks), load_chart(ours))


SHOWN = ("LAS", "LAS with Gandiva's space sharing", "AlloX", "Gavel's LAS", "Gavel's LAS with space sharing")


def load_chart(ours: dict[tuple[str, float], float]) -> Chart:
    """Draw the mean time to completion by arrivals per hour, ours and as published, as the paper's figure does."""
    panels = []
    for title, figure in (
        ("here", ours),
        ("published", {(name, rate): h for name, row in SINGLE_H.items() for rate, h in row.items()}),
    ):
        series = [
            Series(name, tuple((rate, Estimate(h, None, 1)) for (of, rate), h in figure.items() if of == name))
            for name in SHOWN
        ]
        panels.append(Panel(title, "jobs per hour", "mean time to completion [h]", tuple(series), y_range=(0.0, 100.0)))
    return Chart("Gavel: jobs of one GPU on 36 V100, 36 P100 and 36 K80", (tuple(panels),), (4.6, 3.6))


def run_multi(quick: bool) -> Measured:
    points = [(name, rate) for name, there in MULTI_H.items() for rate in there]
    return Measured(
        tuple(
            _check(name, completion_h(name, rate, True), MULTI_H, rate, WIDER_SHARE, MULTI_GPU_CELL)
            for name, rate in (points[:1] if quick else points)
        )
    )


_part = partial(Part, "gavel")
SINGLE_GPU = _part("single-gpu", "Time to completion of jobs of one GPU: our simulator and Gavel's own", run_single)
MULTI_GPU = _part("multi-gpu", "Time to completion of jobs of 1 to 8 GPUs: our simulator and Gavel's own", run_multi)


SEEDS = (0, 1, 2)
MAKESPAN_SHARE = 0.02  # by which a mean may differ
QUICK_H = 2.0  # the same where one number of jobs is run


def mean_makespan_h(policy: Gavel, jobs: int) -> float:
    """Return the mean makespan [h] of `jobs` jobs over the seeds."""
    in_steps = replace(policy, steps=step_speeds())
    return float(np.mean([makespan_h(cluster(drawn_jobs(s, jobs, None, True), "gavel"), in_steps) for s in SEEDS]))


def run_makespan(quick: bool) -> Measured:
    """Compare makespans; quickly, those of Gavel with 100 jobs."""
    gavel = Gavel("makespan", name="gavel:makespan")
    if quick:
        what, there = "Gavel, makespan of 100 jobs [h]", GAVEL_MAKESPAN_H[100]
        return Measured((Check.around(what, mean_makespan_h(gavel, 100), there, QUICK_H, MAKESPAN_CELL),))
    fifo = Gavel(fifo_as_run, aware=False, idle_too=False, name="fifo-as-run")
    ours: dict[str, dict[int, float]] = {}
    checks = []
    for name, policy, theirs in (
        ("FIFO", fifo, FIFO_MAKESPAN_H),
        ("Gavel", gavel, GAVEL_MAKESPAN_H),
    ):
        ours[name] = {jobs: mean_makespan_h(policy, jobs) for jobs in theirs}
        for jobs, hours in ours[name].items():
            what = f"{name}, makespan of {jobs} jobs [h]"
            checks.append(Check.within(what, hours, theirs[jobs], MAKESPAN_SHARE, MAKESPAN_CELL))
    ratio = FIFO_MAKESPAN_H[500] / GAVEL_MAKESPAN_H[500]
    what = "FIFO / Gavel, makespan of 500 jobs"
    checks.append(Check(what, ours["FIFO"][500] / ours["Gavel"][500], 2.4, 2.6, ratio, MAKESPAN_CELL, "own formula"))
    return Measured(tuple(checks))


MAKESPAN = Part("gavel", "makespan", "Makespan of jobs that are all there: our simulator and Gavel's own", run_makespan)

PARTS = (MAKESPAN, SINGLE_GPU, MULTI_GPU)
