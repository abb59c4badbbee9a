"""The mean time from submission to completion in a steady state, by arrivals per hour."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpusched_baselines.gavel import Gavel
from gpusched_reproductions.systems.gavel import published
from gpusched_reproductions.systems.gavel.measure import mean_completion_h
from gpusched_reproductions.systems.gavel.workload import cluster, drawn_jobs
from gpusched_reproductions.systems.store import Check, Findings, Part

if TYPE_CHECKING:
    from gpusched_env.simulator import Policy

JOBS = 24_000  # more than come until job 4999 is done
FIFO = Gavel("fifo", name="gavel-fifo")
LAS = Gavel(aware=False, name="gavel-las:agnostic")
LAS_PERF = Gavel()
DIGIT_H, SHARE = 0.01, 0.01
VERTEX_LOW, VERTEX_HIGH = (
    -0.07,
    0.01,
)  # of jobs of several GPUs: optima at vertices have shorter times than theirs inside


def completion_h(policy: Policy, per_hour: float, multi_gpu: bool) -> float:
    """Give the mean time to completion [h] of the jobs that are measured, seed 0."""
    return mean_completion_h(cluster(drawn_jobs(0, JOBS, per_hour, multi_gpu), "gavel"), policy)


def run_single(quick: bool) -> Findings:
    """Compare jobs of one GPU; quickly, first in, first out with four an hour, which must agree to the digit."""
    there = published.FIFO_PERF_H
    checks = []
    for per_hour in (4.0,) if quick else (4.0, 4.8):
        what = f"FIFO on the fastest type, {per_hour} jobs/h [h]"
        ours = completion_h(FIFO, per_hour, False)
        checks.append(Check.around(what, ours, there[per_hour], DIGIT_H, published.SINGLE_GPU))
    if quick:
        return Findings(tuple(checks))
    las = {rate: completion_h(LAS, rate, False) for rate in published.LAS_H}
    perf = {rate: completion_h(LAS_PERF, rate, False) for rate in published.LAS_PERF_H}
    for rate in las:
        for name, hours, theirs in (("LAS", las, published.LAS_H), ("Gavel's LAS", perf, published.LAS_PERF_H)):
            what = f"{name}, {rate} jobs/h [h]"
            checks.append(Check.within(what, hours[rate], theirs[rate], SHARE, published.SINGLE_GPU))
    for rate, low, high in ((4.8, 1.84, 1.94), (5.6, 3.0, 3.6)):
        ratio = published.LAS_H[rate] / published.LAS_PERF_H[rate]
        what = f"LAS / Gavel's LAS, {rate} jobs/h"
        checks.append(Check(what, las[rate] / perf[rate], low, high, ratio, published.SINGLE_GPU))
    return Findings(tuple(checks))


def run_multi(quick: bool) -> Findings:
    """Compare jobs of 1, 2, 4 and 8 GPUs, two an hour; quickly, first in, first out only."""
    rate, source = 2.0, published.MULTI_GPU
    there = published.MULTI_FIFO_PERF_H[rate]
    fifo = completion_h(FIFO, rate, True)
    checks = [Check.around(f"FIFO on the fastest type, {rate} jobs/h [h]", fifo, there, DIGIT_H, source)]
    if quick:
        return Findings(tuple(checks))
    for name, policy, theirs in (
        ("LAS", LAS, published.MULTI_LAS_H[rate]),
        ("Gavel's LAS", LAS_PERF, published.MULTI_LAS_PERF_H[rate]),
    ):
        low, high = theirs * (1.0 + VERTEX_LOW), theirs * (1.0 + VERTEX_HIGH)
        checks.append(Check(f"{name}, {rate} jobs/h [h]", completion_h(policy, rate, True), low, high, theirs, source))
    return Findings(tuple(checks))


_part = partial(Part, "gavel")
SINGLE_GPU = _part("single-gpu", "Time to completion of jobs of one GPU: our simulator and Gavel's own", run_single)
MULTI_GPU = _part("multi-gpu", "Time to completion of jobs of 1 to 8 GPUs: our simulator and Gavel's own", run_multi)
