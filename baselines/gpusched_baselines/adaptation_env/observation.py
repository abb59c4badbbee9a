"""The observation of the adaptation environment: means over the active jobs, GPU types, and rows of single jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusched_baselines.adaptation_env.features import CHEAPEST_SLACK, GPU_TYPES, JOBS, ROUND, TYPES, look_at_jobs
from gpusched_env.mechanisms.cap.features import write_cap
from gpusched_env.mechanisms.cap.names import FEATURES as CAP_FEATURES
from gpusched_env.mechanisms.prices.features import write_prices
from gpusched_env.mechanisms.prices.names import FEATURES as PRICE_FEATURES
from gpusched_env.mechanisms.prices.names import HOUR, HOURS
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel

TOGETHER = 6  # hours whose features are averaged
PARTS = HOURS // TOGETHER
FIRST = HOUR + HOURS  # the first feature of prices after those of single hours
ENERGY_FEATURES = (
    *PRICE_FEATURES[:HOUR],
    *(f"mean of the same from {TOGETHER * k} h to {TOGETHER * (k + 1)} h from now" for k in range(PARTS)),
    *PRICE_FEATURES[FIRST:],
    *CAP_FEATURES,
)
"""Features that the set of controls `energy` adds to an observation."""

WHOLE = len(ROUND) + len(JOBS) + 1  # numbers before those of GPU types
ROW = len(JOBS) + 1  # numbers of a row of a job: its features, and 1, which is 0 where there is no such job
ENERGY = len(ENERGY_FEATURES)  # numbers after those of GPU types, with `controls="energy"`


def feature_names(gpu_types: Sequence[str], job_features: int = 0, controls: str = "round") -> tuple[str, ...]:
    """Return the names of the numbers of an observation, in their order: 26 + 6 for each GPU type, 17 for each row.

    Args:
        job_features: Number of rows of single jobs, K.
        controls: The set of controls; with `energy` there are 23 more, of prices and the cap, before the rows.
    """
    means = (f"mean over the active jobs: {name}" for name in JOBS)
    critical = "share of the active jobs without slack in their cheapest configuration"
    rows = (f"job {k}: {name}" for k in range(job_features) for name in (*JOBS, "1 if there is such a job"))
    types = (f"{gpu_type}: {name}" for gpu_type in gpu_types for name in GPU_TYPES)
    return (*ROUND, *means, critical, *types, *(ENERGY_FEATURES if controls == "energy" else ()), *rows)


def feature_count(gpu_types: int, job_features: int = 0, controls: str = "round") -> int:
    return WHOLE + TYPES * gpu_types + (ENERGY if controls == "energy" else 0) + ROW * job_features


def rows_of(inputs: int, gpu_types: int, controls: str = "round") -> int | None:
    rows, rest = divmod(inputs - feature_count(gpu_types, 0, controls), ROW)
    return rows if rest == 0 and rows >= 0 else None


@kernel
def observe(board: Board, rate: Floats, seen: Floats, with_energy: bool) -> None:
    """Write the observation of an open round.

    Args:
        board: The board at the beginning of a round, with the times with which STS-X plans.
        rate: Cost rates with which STS-X plans [€/s], (A, C).
        seen: Written: the numbers of `feature_names`, (26 + 6 V + 17 K,), from -1 to 1. The rows are the K jobs with
            the least slack in their cheapest configuration, the least first; those that are missing are 0.
        with_energy: Whether it has features of prices and the cap: the set of controls is `energy`.
    """
    total, configs = board.count[at.ACTIVE], board.facts.configs
    jobs, types = np.zeros((total, len(JOBS))), np.zeros((board.capacity.shape[0], TYPES))
    seen[:] = 0.0
    look_at_jobs(board, rate, jobs, seen[: len(ROUND)], types)
    for i in range(total):
        for f in range(len(JOBS)):
            seen[len(ROUND) + f] += jobs[i, f] / total
        seen[WHOLE - 1] += 1.0 / total if jobs[i, CHEAPEST_SLACK] <= 0.0 else 0.0
    for v in configs[:, at.CONFIG_TYPE]:  # those without configurations stay 0
        seen[WHOLE + TYPES * v : WHOLE + TYPES * (v + 1)] = types[v]
    first_row = WHOLE + TYPES * board.capacity.shape[0]
    if with_energy:
        write_energy(board, seen[first_row : first_row + ENERGY])
        first_row += ENERGY
    _write_rows(jobs, seen[first_row:])
    for f in range(seen.shape[0]):
        seen[f] = min(1.0, max(-1.0, seen[f]))


@kernel
def _write_rows(jobs: Floats, rows: Floats) -> None:
    """Write the features of the jobs with the least slack, each followed by 1; ties go to the earlier submission."""
    rest: Ints = np.arange(jobs.shape[0])
    for k in range(min(jobs.shape[0], rows.shape[0] // ROW)):
        best = k
        for i in range(k + 1, jobs.shape[0]):
            if jobs[rest[i], CHEAPEST_SLACK] < jobs[rest[best], CHEAPEST_SLACK] or (
                jobs[rest[i], CHEAPEST_SLACK] == jobs[rest[best], CHEAPEST_SLACK] and rest[i] < rest[best]
            ):
                best = i
        rest[k], rest[best] = rest[best], rest[k]
        rows[k * ROW : k * ROW + len(JOBS)] = jobs[rest[k]]
        rows[(k + 1) * ROW - 1] = 1.0


@kernel
def write_energy(board: Board, seen: Floats) -> None:
    prices, caps = np.empty(len(PRICE_FEATURES)), np.empty(len(CAP_FEATURES))
    write_prices(board, prices)
    write_cap(board, caps)
    seen[:HOUR] = prices[:HOUR]
    for k in range(PARTS):
        seen[HOUR + k] = prices[HOUR + TOGETHER * k : HOUR + TOGETHER * (k + 1)].mean()
    rest = len(PRICE_FEATURES) - FIRST
    seen[HOUR + PARTS : HOUR + PARTS + rest] = prices[FIRST:]
    seen[HOUR + PARTS + rest :] = caps
