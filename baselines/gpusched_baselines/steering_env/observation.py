"""What the steering environment shows of a round: one vector, whose numbers have names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.steering_env.features import (
    CHEAPEST_SLACK,
    JOBS,
    MEANS,
    OPTIONS,
    ROUND,
    TYPES,
    observe_round,
)
from gpusched_baselines.sts_x import steering as of
from gpusched_baselines.sts_x.appraisal import FREE_RATE
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board

WHOLE = MEANS + len(JOBS) + 1  # numbers before those of GPU types


def feature_names(gpu_types: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the numbers of an observation, in their order: 26 + 6 for each GPU type."""
    means = (f"mean over the active jobs: {name}" for name in JOBS)
    urgent = "share of the active jobs without slack in their cheapest configuration"
    return (
        *ROUND[:MEANS],
        *means,
        urgent,
        *(f"{gpu_type}: {name}" for gpu_type in gpu_types for name in OPTIONS[:TYPES]),
    )


def feature_count(gpu_types: int) -> int:
    """Return how many numbers an observation has for so many GPU types."""
    return WHOLE + TYPES * gpu_types


@kernel
def look_at_jobs(board: Board, rate: Floats, jobs: Floats, whole: Floats, options: Floats) -> None:
    """Write the features of a round, and leave what STS-X remembers of its jobs as it is; see `observe_round`."""
    total, memory = board.count[at.ACTIVE], board.memory
    cheapest = np.empty(total)
    for i in range(total):
        cheapest[i] = memory[board.active[i], of.CHEAPEST]
    observe_round(board, rate, FREE_RATE, jobs, whole, options)
    for i in range(total):
        memory[board.active[i], of.CHEAPEST] = cheapest[i]


def job_features(board: Board, rate: Floats) -> Floats:
    """Return the features of the active jobs, (A, len(JOBS)); see `look_at_jobs`."""
    jobs = np.empty((board.count[at.ACTIVE], len(JOBS)))
    options = np.empty((board.facts.configs.shape[0], len(OPTIONS)))
    look_at_jobs(board, rate, jobs, np.empty(len(ROUND)), options)
    return jobs


@kernel
def observe(board: Board, rate: Floats, seen: Floats) -> None:
    """Write the observation of an open round.

    Args:
        board: The board, at the beginning of a round, with the times with which STS-X plans.
        rate: Cost rates with which it plans [€/s], (C,).
        seen: Written: the numbers of `feature_names`, (26 + 6 V,), from -1 to 1.
    """
    total, configs = board.count[at.ACTIVE], board.facts.configs
    jobs, whole, options = (
        np.zeros((total, len(JOBS))),
        np.zeros(len(ROUND)),
        np.zeros((configs.shape[0], len(OPTIONS))),
    )
    look_at_jobs(board, rate, jobs, whole, options)
    seen[:] = 0.0
    seen[:MEANS] = whole[:MEANS]
    for i in range(total):
        for f in range(len(JOBS)):
            seen[MEANS + f] += jobs[i, f] / total
        seen[WHOLE - 1] += 1.0 / total if jobs[i, CHEAPEST_SLACK] <= 0.0 else 0.0
    for c in range(configs.shape[0]):
        first = WHOLE + TYPES * configs[c, at.CONFIG_TYPE]
        seen[first : first + TYPES] = options[c, :TYPES]
    for f in range(seen.shape[0]):
        seen[f] = min(1.0, max(-1.0, seen[f]))
