"""Gavel for elastic jobs: least energy cost with a price of tardiness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, hstack  # type: ignore[import-untyped]

from gpusched_baselines.gavel.program import GavelProgram, ProgramError, elastic
from gpusched_baselines.gavel.round import ByRounds
from gpusched_baselines.planning.cheapest import Epochs, check_epochs
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand
    from gpusched_env.simulator.kernels import View

LEAST = 0.01  # least need of every job, of its fastest speed: a job with a late due date might else never run
EAGER = 1e-3  # additional cost of an epoch that is left for later, relative to its energy


def priced(demand: GavelDemand, guard_s: float) -> NDArray[np.float64]:
    """Minimise Σ_j Σ_c r_c x[j, c] + Σ_j (ω_j / fastest_j + e_j) u_j [€/s], (A, C).

    thr_j(x) + u_j ≥ need_j. A job needs left_j / (due_j - t - guard), or its fastest speed where that is not enough.
    Each epoch that is missing makes the job late by the seconds that one takes at its fastest, and must be done later,
    for e_j, its least energy. So energy and tardiness are both in euros per second, and due dates are missed one by one
    where there are too few GPUs.

    Args:
        guard_s: How long before their due dates jobs are planned to end [s]: rounds only approximate the shares.
    """
    jobs = len(demand.job)
    fastest = np.maximum(demand.speed.max(axis=1), 1e-300)
    time_s = np.maximum(demand.due_in_s - guard_s, 1e-9)
    need = np.clip(demand.left / time_s / fastest, LEAST, 1.0)  # as a fraction of the fastest speed
    epoch = np.where(demand.speed > 0.0, demand.rate / np.maximum(demand.speed, 1e-300), np.inf).min(axis=1)
    unit = max(float(demand.rate.max()), float(demand.tardiness.max()), 1e-300)
    later = (demand.tardiness + (1.0 + EAGER) * epoch * fastest) / unit + EAGER
    program = GavelProgram(demand, extra=jobs)
    short = csr_array((-np.ones(jobs), (np.arange(jobs), np.arange(jobs))), (jobs, jobs))
    rows = hstack([-program.per_job(demand.speed / fastest[:, None]), short])
    found = program.least(demand.rate / unit, later, rows, -need)
    if found is None:
        raise ProgramError("there is no solution, although jobs may be late")
    return found.x


@dataclass(frozen=True, slots=True)
class GavelCost(ByRounds):
    """Gavel for elastic jobs: shares of time in all configurations, with least energy cost and a price of tardiness.

    The program is in `priced`. It is solved at arrivals and completions, and `reset_s` later. Every event begins a
    round, in which no GPU is used without need: only jobs with a share of a configuration may get it, the costliest
    per epoch last.

    Args:
        epochs: The estimate of the epochs that jobs have left: "worst-case", "mean" or "conditional-mean".
        guard_s: How long before their due dates jobs are planned to end [s], ≥ 0.
        round_s: Length of a round [s], > 0.
        reset_s: Time after which the program is solved again without arrivals and completions [s], ≥ 0.
        name: Name, as tables show it.

    Raises:
        InputError: One of them is out of its range.
    """

    epochs: Epochs = "worst-case"
    guard_s: float = 360.0
    round_s: float = 360.0
    reset_s: float = 1920.0
    name: str = "gavel:cost"
    preemption: bool = True
    solver: str = "highs"
    at_once = True
    any_configuration = True

    def __post_init__(self) -> None:
        check_epochs(self.epochs)
        checks.seconds("guard_s", self.guard_s)
        checks.duration("round_s", self.round_s)
        checks.seconds("reset_s", self.reset_s)

    def demand(self, view: View) -> GavelDemand:
        """Return the jobs with all their configurations."""
        return elastic(view, self.epochs)

    def shares(self, demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:  # noqa: ARG002 - nothing is drawn
        """Solve for the shares of time, (A, C)."""
        return priced(demand, self.guard_s)

    def order(self, demand: GavelDemand, rng: Generator) -> NDArray[np.int64]:  # noqa: ARG002 - nothing is drawn
        """Return the GPU types, the one with the cheapest epochs on average first."""
        per_epoch = np.where(demand.speed > 0.0, demand.rate / np.maximum(demand.speed, 1e-300), np.inf)
        least = np.array(
            [per_epoch[:, demand.kind == v].min(axis=1, initial=np.inf) for v in range(len(demand.capacity))]
        )
        relative = np.minimum(least / np.maximum(per_epoch.min(axis=1), 1e-300), 1e3)
        return np.argsort(relative.mean(axis=1), kind="stable")
