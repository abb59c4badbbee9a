"""Gavel as a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_baselines.gavel import memory as of
from gpusched_baselines.gavel.demand import rigid
from gpusched_baselines.gavel.objectives import cost_slo, fifo, finish_time, las, makespan, proportional_shares
from gpusched_baselines.gavel.round import place_as_before, place_by_priority, reset, wake_all
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.demand import Demand
    from gpusched_env.model import Instance
    from gpusched_env.simulator import View

Objective = Literal["las", "makespan", "finish-time", "cost-slo", "fifo"]

_OBJECTIVES: dict[str, Callable[[Demand], NDArray[np.float64]]] = {
    "las": las,
    "makespan": makespan,
    "finish-time": finish_time,
    "cost-slo": cost_slo,
    "fifo": fifo,
}


@dataclass(frozen=True, slots=True)
class Gavel:
    """Gavel."""

    objective: Objective = "las"
    aware: bool = True
    round_s: float = 360.0
    reset_s: float = 1920.0
    name: str = "gavel-las"
    preemption: bool = True
    solver: str = "highs"

    def __post_init__(self) -> None:
        if self.objective not in _OBJECTIVES:
            raise InputError("objective", self.objective, ", ".join(_OBJECTIVES))
        checks.duration("round_s", self.round_s)
        checks.seconds("reset_s", self.reset_s)

    def memory_columns(self, instance: Instance) -> int:
        """Say how many columns of memory it needs."""
        types = len(instance.gpu_types)
        return of.columns(types, types)

    def decide(self, view: View, rng: Generator) -> None:
        """Begin a round if the last one is over or nothing of it runs; else leave everything as it is."""
        board = view.board
        options = len(view.room)
        own, now = 3 * options, view.now_s
        runs = np.any(view.jobs[view.active, at.OLD_CONFIG] >= 0)
        if now < view.memory[0, own + of.ROUND_END] and runs:
            place_as_before(board)
            wake_all(board, float(view.memory[0, own + of.ROUND_END]))
            return
        demand = rigid(view)
        seen = 1.0 + view.count[at.SUBMITTED] + view.count[at.DONE]
        reset_at = view.memory[0, own + of.RESET_AT]
        if seen != view.memory[0, own + of.SEEN] and (reset_at == 0.0 or now - reset_at >= self.reset_s):
            reset(board, demand.job, self._shares(demand), demand.kind, 0.5 * self.round_s)
        place_by_priority(
            board, demand.job, demand.config, demand.kind, self._order(demand, rng), self.round_s,
            self.objective != "fifo",
        )  # fmt: skip
        view.memory[0, own + of.ROUND_END] = now + self.round_s
        wake_all(board, now + self.round_s)

    def _shares(self, demand: Demand) -> NDArray[np.float64]:
        if self.aware:
            return _OBJECTIVES[self.objective](demand)
        if self.objective == "las":
            return proportional_shares(demand)
        return _OBJECTIVES[self.objective](demand.agnostic())

    def _order(self, demand: Demand, rng: Generator) -> NDArray[np.int64]:
        if not self.aware:
            return rng.permutation(len(demand.capacity))
        relative = demand.speed / demand.speed.max(axis=1)[:, None]
        return np.argsort(-relative.mean(axis=0), kind="stable")
