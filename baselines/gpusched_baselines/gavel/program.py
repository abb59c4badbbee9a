"""The linear program that all of Gavel's policies share: shares of time of jobs, within the GPUs of every type."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog  # type: ignore[import-untyped]
from scipy.sparse import csr_array, hstack, vstack  # type: ignore[import-untyped]

from gpusched_baselines.planning.capacity import least_gpus
from gpusched_baselines.planning.cheapest import Epochs, epochs_left
from gpusched_env.simulator.kernels import View, at


class ProgramError(RuntimeError):
    """The solver found no solution, although there is one."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An optimum.

    Attributes:
        x: Shares of time, (A, K), in [0, 1].
        extra: The other variables, (E,).
        value: The least value of the objective.
        duals: Fall of the objective per unit of the rows that were added, ≥ 0.
    """

    x: NDArray[np.float64]
    extra: NDArray[np.float64]
    value: float
    duals: NDArray[np.float64]


class GavelProgram:
    """x ≥ 0, Σ_k x[j, k] ≤ 1, Σ_j g[j, k] x[j, k] ≤ W_v over the options k of type v; and further rows.

    There is a variable for every option that exists, and `extra` others ≥ 0. Programs are scaled: jobs' rows should
    have coefficients near 1.
    """

    def __init__(self, demand: GavelDemand, extra: int = 0) -> None:
        self.demand, self.extra = demand, extra
        self.row, self.option = np.nonzero(demand.speed > 0.0)
        jobs, types = demand.speed.shape[0], len(demand.capacity)
        each = np.arange(len(self.row))
        of_jobs = csr_array((np.ones(len(each)), (self.row, each)), (jobs, len(each)))
        kind = demand.kind[self.option]
        gpus = demand.gpus[self.row, self.option] / np.maximum(demand.capacity[kind], 1e-300)
        of_types = csr_array((gpus, (kind, each)), (types, len(each)))
        base = vstack([of_jobs, of_types])
        self.base = hstack([base, csr_array((jobs + types, extra))]) if extra else base

    def per_job(self, worth: NDArray[np.float64]) -> csr_array:
        """Return the matrix that makes Σ_k worth[j, k] x[j, k] of the variables of the options, (A, n)."""
        each = np.arange(len(self.row))
        return csr_array((worth[self.row, self.option], (self.row, each)), (len(worth), len(each)))

    def least(
        self,
        cost: NDArray[np.float64],
        extra_cost: NDArray[np.float64],
        rows: csr_array | None = None,
        most: NDArray[np.float64] | None = None,
        upper: NDArray[np.float64] | None = None,
    ) -> Solution | None:
        """Minimise Σ cost · x + Σ extra_cost · extra; None if there is no solution.

        Args:
            cost: Costs of the options, (A, K).
            extra_cost: Costs of the other variables, (E,).
            rows: Further rows over all variables; their values must not exceed `most`.
            upper: Upper bounds of the other variables, (E,); by default none.

        Raises:
            ProgramError: The solver stopped without a result.
        """
        matrix = self.base if rows is None else vstack([self.base, rows])
        ones = np.ones(self.base.shape[0])
        bound = ones if most is None else np.concatenate([ones, most])
        highest = np.concatenate([np.ones(len(self.row)), np.full(self.extra, np.inf) if upper is None else upper])
        objective = np.concatenate([cost[self.row, self.option], extra_cost])
        bounds = np.column_stack([np.zeros(len(highest)), highest])
        found = linprog(objective, A_ub=matrix, b_ub=bound, bounds=bounds, method="highs")
        if found.status == 2:
            return None
        if found.status != 0:
            raise ProgramError(f"HiGHS: {found.message}")
        x = np.zeros(self.demand.speed.shape)
        n = len(self.row)
        x[self.row, self.option] = np.clip(found.x[:n], 0.0, 1.0)
        x /= np.maximum(1.0, x.sum(axis=1))[:, None]  # the solver's tolerance on sums is 1e-7
        return Solution(x, found.x[n:], float(found.fun), -found.ineqlin.marginals[len(ones) :])


def raised(
    demand: GavelDemand, worth: NDArray[np.float64], slope: NDArray[np.float64], base: NDArray[np.float64]
) -> Solution:
    """Raise the level t as far as there are GPUs for it: Σ_k worth[j, k] x[j, k] ≥ base_j + slope_j t for all jobs.

    Args:
        worth: Value of a share of an option, (A, K).
        slope: The factor of every job on the level, ≥ 0 and above 0 for at least one, (A,).
        base: The value of every job at level 0, which must be feasible, (A,).

    Returns:
        An optimum with t in `extra`; `duals` are those of the jobs' rows: where one is above 0, the job cannot get more
        unless another one gets less.

    Raises:
        ProgramError: The solver stopped without a result, or there is no solution.
    """
    program = GavelProgram(demand, extra=1)
    scale = np.maximum(worth.max(axis=1), 1e-300)
    rows = hstack([-program.per_job(worth / scale[:, None]), csr_array((slope / scale)[:, None])])
    nothing = np.zeros(worth.shape)
    found = program.least(nothing, np.array([-1.0]), rows, -base / scale)
    if found is None:  # `base` comes from a program before, met up to the solver's tolerance
        found = program.least(nothing, np.array([-1.0]), rows, -(base - ROUNDED * np.abs(base)) / scale)
    if found is None:
        raise ProgramError("the level cannot be met")
    return found


ROUNDED = 1e-6  # part of a level by which the solver may miss it
LEAST_WEIGHT = 1e-3  # of a job, relative to the heaviest: a weight of 0 would make programs unbounded


@dataclass(frozen=True, slots=True, eq=False)
class GavelDemand:
    """A jobs with K options each, in which they run on GPUs of V types.

    Attributes:
        job: The jobs, by index, (A,).
        config: The configuration of each option, (A, K); -1 where a job has no such option.
        speed: Epochs per second in it, (A, K); 0 where there is no option.
        gpus: GPUs held in it, (A, K); 0 where there is no option.
        rate: Cost rate in full nodes [€/s], (A, K); 0 where there is no option.
        kind: The GPU type of the options, (K,).
        capacity: GPUs of each type, (V,).
        weight: Weights of the jobs, > 0, (A,).
        left: Estimated epochs left, > 0, (A,).
        age_s: Time since the submission [s], (A,).
        isolated_s: Time that what is done would have taken in isolation [s], (A,) (`isolated`).
        due_in_s: Time until the due date [s], negative after it, (A,).
        tardiness: Tardiness weights [€/s], (A,).
        before: The shares of time that the jobs have had so far, (A, K); 0 for new ones.
        entity: The entity that every job belongs to, from 0, (A,).
    """

    job: NDArray[np.int64]
    config: NDArray[np.int64]
    speed: NDArray[np.float64]
    gpus: NDArray[np.float64]
    rate: NDArray[np.float64]
    kind: NDArray[np.int64]
    capacity: NDArray[np.float64]
    weight: NDArray[np.float64]
    left: NDArray[np.float64]
    age_s: NDArray[np.float64]
    isolated_s: NDArray[np.float64]
    due_in_s: NDArray[np.float64]
    tardiness: NDArray[np.float64]
    before: NDArray[np.float64]
    entity: NDArray[np.int64]

    def thr(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the epochs per second of every job with the shares of time `x`, (A, K)."""
        return (self.speed * x).sum(axis=1)

    def used(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the GPUs of every type that the shares `x`, (A, K), take on average, (V,)."""
        return np.bincount(self.kind, (self.gpus * x).sum(axis=0), len(self.capacity)).astype(np.float64)

    @property
    def proportional(self) -> NDArray[np.float64]:
        """Return the epochs per second of every job that runs on each type in proportion to its GPUs, (A,)."""
        share = self.capacity / self.capacity.sum()
        return np.maximum(self.thr(np.broadcast_to(share[self.kind], self.speed.shape)), 1e-300)

    @property
    def isolated(self) -> NDArray[np.float64]:
        """Return the epochs per second of every job that has W_v / (m s_j) of type v, at most 1 in all, (A,).

        That is what it would have if the m jobs divided all GPUs equally.
        """
        share = self.capacity[self.kind] / (len(self.speed) * np.maximum(self.size, 1e-300))[:, None]
        return self.thr(share / np.maximum(1.0, share.sum(axis=1))[:, None])

    @property
    def size(self) -> NDArray[np.float64]:
        """Return the GPUs that every job asks for: the most of its options, (A,)."""
        return self.gpus.max(axis=1)

    def agnostic(self) -> GavelDemand:
        """Return the demand for a scheduler that takes all GPU types to be as fast as the fastest of a job."""
        return replace(self, speed=np.where(self.speed > 0.0, self.speed.max(axis=1)[:, None], 0.0))


def rigid(view: View, *, whole: bool = False) -> GavelDemand:
    """Make the demand of jobs that run in one configuration per GPU type: V options.

    Gavel's jobs ask for a number of GPUs. A job that may use several configurations of a type asks for the one with
    least GPU-seconds per epoch, of equals the first; if `whole`, no share.
    """
    types = len(view.capacity)
    gpus, kind = _gpus(view), view.configs[:, at.CONFIG_TYPE]
    active = view.active
    config = np.full((len(active), types), -1)
    able = (view.configs[:, at.CONFIG_UNITS] == 0) if whole else np.ones(len(gpus), dtype=bool)
    for v in range(types):
        mine = np.flatnonzero(able & (kind == v))
        if len(mine):
            seconds = view.tau[active][:, mine] * gpus[mine]
            best = seconds.argmin(axis=1)
            there = np.isfinite(seconds[np.arange(len(active)), best])
            config[:, v] = np.where(there, mine[best], -1)
    return _demand(view, active, config, np.arange(types), "worst-case")


def elastic(view: View, epochs: Epochs) -> GavelDemand:
    active = view.active
    config = np.where(np.isfinite(view.tau[active]), np.arange(len(view.configs)), -1)
    return _demand(view, active, config, view.configs[:, at.CONFIG_TYPE], epochs)


def _gpus(view: View) -> NDArray[np.float64]:
    return view.configs[:, at.CONFIG_SIZE] / at.UNITS


def _capacity(view: View) -> NDArray[np.float64]:
    """Return the GPUs of every type that active jobs may use, (V,)."""
    kind, gpus = view.nodes[:, at.NODE_TYPE], view.nodes[:, at.NODE_GPUS]
    return np.bincount(kind, gpus * (gpus >= least_gpus(view.board)[kind]), len(view.capacity)).astype(np.float64)


def _demand(
    view: View, active: NDArray[np.int64], config: NDArray[np.int64], kind: NDArray[np.int64], epochs: Epochs
) -> GavelDemand:
    jobs, there = view.jobs[active], config >= 0
    seconds = np.where(there, np.take_along_axis(view.tau[active], np.maximum(config, 0), axis=1), np.inf)
    weight = jobs[:, at.WEIGHT]
    heaviest = weight.max(initial=0.0)
    left = epochs_left(view, active, epochs)
    return GavelDemand(
        job=active,
        config=config,
        speed=1.0 / seconds,
        gpus=np.where(there, _gpus(view)[config], 0.0),
        rate=np.where(there, view.least_rate[jobs[:, [at.APPLICATION]].astype(np.int64), config], 0.0),
        kind=kind,
        capacity=_capacity(view),
        weight=np.maximum(weight / heaviest, LEAST_WEIGHT) if heaviest > 0.0 else np.ones(len(active)),
        left=np.maximum(left, 1e-12 * jobs[:, at.MAX_EPOCHS]),
        age_s=view.now_s - jobs[:, at.SUBMISSION],
        isolated_s=np.zeros(len(active)),
        due_in_s=jobs[:, at.DUE] - view.now_s,
        tardiness=weight,
        before=view.memory[active, : len(kind)].copy(),
        entity=np.zeros(len(active), dtype=np.int64),
    )
