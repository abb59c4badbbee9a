"""Gavel as a policy: an objective sets the shares of time of all jobs, rounds approximate them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from gpusched_baselines.gavel.allox import allox
from gpusched_baselines.gavel.hierarchical import Within, quantile_entities, water_filling
from gpusched_baselines.gavel.objectives import (
    any_fifo,
    cost_slo,
    fifo,
    finish_time,
    las,
    las_without_speeds,
    makespan,
)
from gpusched_baselines.gavel.program import rigid
from gpusched_baselines.gavel.round import ByRounds, StepSpeeds, fastest_types
from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand
    from gpusched_env.simulator.kernels import View

Objective = Literal["las", "makespan", "finish-time", "cost-slo", "hierarchical", "fifo", "allox"]
"""The objective of Gavel's shares of time."""

_AWARE: dict[str, Callable[[GavelDemand], NDArray[np.float64]]] = {
    "las": las,
    "makespan": makespan,
    "finish-time": finish_time,
    "cost-slo": cost_slo,
    "fifo": fifo,
    "allox": allox,
}


@dataclass(frozen=True, slots=True)
class Gavel(ByRounds):
    """Gavel: a linear program sets the share of time of every job on every GPU type, and rounds approximate it.

    Jobs are rigid: of every GPU type a job uses the configuration with least GPU-seconds per epoch. The program is
    solved again after arrivals and completions, but at most every `reset_s`; jobs that arrive in between wait. In a
    round the types are filled one after the other, the fastest first, by share / part of the time of the type that the
    job has had. Idle GPUs go to jobs without a share. Arrivals and completions within a round change nothing.

    Args:
        objective: "las", max-min fairness of the time of jobs; "makespan"; "finish-time", the worst ratio to a fair
            share of the cluster; "cost-slo", epochs per euro with due dates; "hierarchical", max-min fairness between
            entities and within them; "fifo", in order, each on the fastest type with free capacity; "allox", the least
            sum of completion times, each job on one GPU until it ends. Or a function from
            a `GavelDemand` and a generator to shares, (A, K).
        aware: Whether speeds differ by type; else jobs count as equally fast on all, and rounds fill the types in
            random order.
        round_s: Length of a round [s], > 0.
        reset_s: Least time between two programs [s], ≥ 0.
        entities: With "hierarchical": into how many entities jobs are divided, by the quantiles of their tardiness
            weights, ≥ 1; entity e, counted from 1, has weight e. Or a function from the view and the active jobs to
            their entities, 0 to E - 1, (A,).
        within: With "hierarchical": how an entity divides its share among its jobs: by weight ("fairness"), or to the
            first submitted ("fifo").
        idle_too: Whether GPUs that are left in a round go to jobs without a share of their type; never with "fifo".
        type_order: The GPU types in the order in which rounds fill them, by index; by default the one first on which
            the active jobs are fastest on average, and at random unless `aware`.
        steps: The speeds of jobs that do whole steps in a round and lose the rest: a round counts for them as the time
            of its whole steps. By default it counts in full, as for jobs that lose nothing.
        name: Name, as tables show it.

    Raises:
        InputError: One of them is out of its range.
    """

    objective: Objective | Callable[[GavelDemand, Generator], NDArray[np.float64]] = "las"
    aware: bool = True
    round_s: float = 360.0
    reset_s: float = 1920.0
    entities: int | Callable[[View, NDArray[np.int64]], NDArray[np.int64]] = 3
    within: Within = "fairness"
    idle_too: bool = True
    type_order: tuple[int, ...] | None = None
    steps: StepSpeeds | None = None
    name: str = "gavel:las"
    preemption: bool = True
    solver: str = "highs"

    def __post_init__(self) -> None:
        if not callable(self.objective) and self.objective not in get_args(Objective):
            raise InputError("objective", self.objective, f"{', '.join(get_args(Objective))}, or a function")
        checks.duration("round_s", self.round_s)
        checks.seconds("reset_s", self.reset_s)
        if not callable(self.entities):
            checks.whole("entities", self.entities)
        if self.within not in {"fairness", "fifo"}:
            raise InputError("within", self.within, "fairness or fifo")
        if self.type_order is not None and sorted(self.type_order) != list(range(len(self.type_order))):
            raise InputError("type_order", self.type_order, "every GPU type once, by index")

    @property
    def fills(self) -> bool:
        """Return whether GPUs that are left in a round go to jobs without a share of their type."""
        return self.idle_too and self.objective != "fifo"

    def demand(self, view: View) -> GavelDemand:
        """Return the jobs with an option for each GPU type."""
        found = rigid(view) if self.aware else rigid(view).agnostic()
        if self.objective != "hierarchical":
            return found
        if callable(self.entities):
            return replace(found, entity=np.asarray(self.entities(view, found.job), dtype=np.int64))
        return replace(found, entity=quantile_entities(found.tardiness, self.entities))

    def shares(self, demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:
        """Solve for the shares of time, (A, K)."""
        if not isinstance(self.objective, str):
            return self.objective(demand, rng)
        if self.objective == "hierarchical":
            return water_filling(demand, np.arange(1.0, demand.entity.max() + 2.0), self.within)
        if not self.aware and self.objective == "fifo":
            return any_fifo(demand, rng)
        if not self.aware and self.objective == "las":
            return las_without_speeds(demand)
        return _AWARE[self.objective](demand)

    def order(self, demand: GavelDemand, rng: Generator) -> NDArray[np.int64]:
        """Return the GPU types in the order in which rounds fill them, (V,)."""
        if self.type_order is not None:
            return np.array(self.type_order)
        if not self.aware:
            return rng.permutation(len(demand.capacity))
        return fastest_types(demand)
