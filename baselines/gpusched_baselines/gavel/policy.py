"""Gavel as policies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from gpusched_baselines.gavel import round as of
from gpusched_baselines.gavel.demand import elastic, rigid
from gpusched_baselines.gavel.objectives import (
    Within,
    any_fifo,
    cost_slo,
    fifo,
    finish_time,
    las,
    makespan,
    priced,
    proportional_shares,
    water_filling,
)
from gpusched_baselines.gavel.round import Mechanism
from gpusched_baselines.planning.cheapest import Epochs, check_epochs
from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.demand import Demand
    from gpusched_env.model import Instance
    from gpusched_env.simulator import View

Objective = Literal["las", "makespan", "finish-time", "cost-slo", "hierarchical", "fifo"]
"""What Gavel's shares of time are best for."""

_AWARE: dict[str, Callable[[Demand], NDArray[np.float64]]] = {
    "las": las,
    "makespan": makespan,
    "finish-time": finish_time,
    "cost-slo": cost_slo,
    "fifo": fifo,
}


@dataclass(frozen=True, slots=True)
class Gavel:
    """Gavel: a linear program says what share of time every job shall have of every GPU type, rounds come near to it.

    Jobs are rigid: of every GPU type a job uses the configuration with least GPU-seconds per epoch. Shares are solved
    for when jobs have come or gone, but not more often than every `reset_s`; who comes in between waits. In a round the
    types are filled one after the other, the fastest first, by share / part of the time of the type that the job has
    had. What is left goes to jobs without a share. Arrivals and completions in a round change nothing.

    Args:
        objective: "las", max-min fairness of the time got; "makespan"; "finish-time", the worst ratio to a fair share
            of the cluster; "cost-slo", epochs per euro with due dates; "hierarchical", max-min fairness among entities
            and in them; "fifo", in order, each on the fastest type with room. Or a function from a `Demand` and a
            generator to shares, (A, K).
        aware: Whether speeds differ by type; else jobs are taken to be equally fast on all, and rounds fill the types
            in random order.
        round_s: Length of a round [s], > 0.
        reset_s: Least time between two programs [s], ≥ 0.
        entities: With "hierarchical": into how many entities jobs are divided, by the quantiles of their tardiness
            weights, ≥ 1; entity e, counted from 1, has weight e. Or a function from the view and the active jobs to
            their entities, 0 to E - 1, (A,).
        within: With "hierarchical": how an entity divides what it gets: by weight ("fairness"), or to the first
            submitted ("fifo").
        idle_too: Whether GPUs that are left in a round go to jobs without a share of their type; never with "fifo".
        name: Name, as tables show it.

    Raises:
        InputError: One of them is out of its range.
    """

    objective: Objective | Callable[[Demand, Generator], NDArray[np.float64]] = "las"
    aware: bool = True
    round_s: float = 360.0
    reset_s: float = 1920.0
    entities: int | Callable[[View, NDArray[np.int64]], NDArray[np.int64]] = 3
    within: Within = "fairness"
    idle_too: bool = True
    name: str = "gavel-las"
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

    def memory_columns(self, instance: Instance) -> int:
        """Give the columns of memory that it needs."""
        types = len(instance.gpu_types)
        return of.columns(types, types)

    def decide(self, view: View, rng: Generator) -> None:
        """Begin a round if the last one is over; else leave everything as it is."""
        idle_too = self.idle_too and self.objective != "fifo"
        Mechanism(len(view.room), self.round_s, self.reset_s, idle_too).decide(view, rng, self)

    def demand(self, view: View) -> Demand:
        """Give the jobs with an option for each GPU type."""
        found = rigid(view)
        if self.objective != "hierarchical":
            return found
        if callable(self.entities):
            return replace(found, entity=np.asarray(self.entities(view, found.job), dtype=np.int64))
        return replace(found, entity=quantile_entities(found.tardiness, self.entities))

    def shares(self, demand: Demand, rng: Generator) -> NDArray[np.float64]:
        """Solve for the shares of time, (A, K)."""
        if not isinstance(self.objective, str):
            return self.objective(demand, rng)
        seen = demand if self.aware else demand.agnostic()
        if self.objective == "hierarchical":
            return water_filling(seen, np.arange(1.0, seen.entity.max() + 2.0), self.within)
        if not self.aware and self.objective == "fifo":
            return any_fifo(demand, rng)
        return (
            proportional_shares(demand) if not self.aware and self.objective == "las" else _AWARE[self.objective](seen)
        )

    def order(self, demand: Demand, rng: Generator) -> NDArray[np.int64]:
        """Give the GPU types, the one on which jobs are fastest on average first; at random if that is not seen."""
        if not self.aware:
            return rng.permutation(len(demand.capacity))
        relative = demand.speed / np.maximum(demand.speed.max(axis=1), 1e-300)[:, None]
        return np.argsort(-relative.mean(axis=0), kind="stable")


def quantile_entities(weight: NDArray[np.float64], entities: int) -> NDArray[np.int64]:
    """Divide jobs into entities by the quantiles of their weights, the lightest in entity 0, (A,)."""
    edges = np.quantile(weight, np.arange(1, entities) / entities) if entities > 1 else np.empty(0)
    return np.searchsorted(edges, weight, side="left")


@dataclass(frozen=True, slots=True)
class GavelCost:
    """Gavel's cost with due dates made elastic: shares of time in all configurations, least energy, lateness priced.

    The program is in `priced`. It is solved when jobs come or go, and `reset_s` later. Every event begins a round, in
    which no GPU is used without need: only jobs with a share of a configuration may get it, the dearest per epoch last.

    Args:
        epochs: The epochs that jobs are taken to have left: "worst-case", "mean" or "conditional-mean".
        guard_s: How much sooner than due jobs are planned to end [s], ≥ 0.
        round_s: Length of a round [s], > 0.
        reset_s: Time after which the program is solved anew if no job has come or gone [s], ≥ 0.
        name: Name, as tables show it.

    Raises:
        InputError: One of them is out of its range.
    """

    epochs: Epochs = "worst-case"
    guard_s: float = 360.0
    round_s: float = 360.0
    reset_s: float = 1920.0
    name: str = "gavel-cost"
    preemption: bool = True
    solver: str = "highs"

    def __post_init__(self) -> None:
        check_epochs(self.epochs)
        checks.seconds("guard_s", self.guard_s)
        checks.duration("round_s", self.round_s)
        checks.seconds("reset_s", self.reset_s)

    def memory_columns(self, instance: Instance) -> int:
        """Give the columns of memory that it needs."""
        return of.columns(len(instance.configurations), len(instance.gpu_types))

    def decide(self, view: View, rng: Generator) -> None:
        """Begin a round."""
        options = len(view.configurations)
        Mechanism(options, self.round_s, self.reset_s, idle_too=False, at_once=True).decide(view, rng, self)

    def demand(self, view: View) -> Demand:
        """Give the jobs with all their configurations."""
        return elastic(view, self.epochs)

    def shares(self, demand: Demand, rng: Generator) -> NDArray[np.float64]:  # noqa: ARG002 - nothing is drawn
        """Solve for the shares of time, (A, C)."""
        return priced(demand, self.guard_s)

    def order(self, demand: Demand, rng: Generator) -> NDArray[np.int64]:  # noqa: ARG002 - nothing is drawn
        """Give the GPU types, the one with the cheapest epochs on average first."""
        per_epoch = np.where(demand.speed > 0.0, demand.rate / np.maximum(demand.speed, 1e-300), np.inf)
        least = np.array(
            [per_epoch[:, demand.kind == v].min(axis=1, initial=np.inf) for v in range(len(demand.capacity))]
        )
        relative = np.minimum(least / np.maximum(per_epoch.min(axis=1), 1e-300), 1e3)
        return np.argsort(relative.mean(axis=1), kind="stable")
