"""When Gavel's rounds begin, when shares are solved for anew, and who calls the kernels of a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gpusched_baselines.gavel import memory as of
from gpusched_baselines.gavel.round import place_as_before, place_by_priority, reset, wake_all
from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.demand import Demand
    from gpusched_env.simulator import View


class Plan(Protocol):
    """What a policy brings to the mechanism."""

    def demand(self, view: View) -> Demand:
        """Give the jobs with their options."""

    def shares(self, demand: Demand, rng: Generator) -> NDArray[np.float64]:
        """Give their shares of time, (A, K)."""

    def order(self, demand: Demand, rng: Generator) -> NDArray[np.int64]:
        """Give the GPU types in the order in which rounds fill them, (V,)."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Rounds in which jobs get nearly their shares.

    Args:
        options: How many options jobs have.
        round_s: Length of a round [s].
        reset_s: Shares are solved for anew at most so often [s], and only if jobs have come or gone.
        idle_too: Whether GPUs that are left go to jobs that have no share of their type.
        at_once: Whether every event begins a round, arrivals and completions have shares solved for anew at once, and
            `reset_s` after that it is done without them.
    """

    options: int
    round_s: float
    reset_s: float
    idle_too: bool
    at_once: bool = False

    def decide(self, view: View, rng: Generator, plan: Plan) -> None:
        """Begin a round if the last one is over or nothing runs any more; else leave everything as it is.

        Raises:
            InputError: The run has too little memory for the policy.
        """
        own, board = 3 * self.options, view.board
        needs = of.columns(self.options, len(view.room))
        if view.memory.shape[1] < needs:
            raise InputError("memory_columns", view.memory.shape[1], f"{needs} or more")
        end_s = float(view.memory[0, own + of.ROUND_END])
        if not self.at_once and view.now_s < end_s and np.any(view.jobs[view.active, at.OLD_CONFIG] >= 0):
            place_as_before(board)
            wake_all(board, end_s)
            return
        demand = plan.demand(view)
        if self._is_due(view):
            x = plan.shares(demand, rng)
            reset(board, demand.job, x, demand.kind, 0.5 * self.round_s)
        order = plan.order(demand, rng)
        place_by_priority(board, demand.job, demand.config, demand.kind, order, self.round_s, self.idle_too)
        view.memory[0, own + of.ROUND_END] = view.now_s + self.round_s
        wake_all(board, view.now_s + self.round_s)

    def _is_due(self, view: View) -> bool:
        """Say whether shares are to be solved for anew."""
        own, first = 3 * self.options, view.memory[0]
        changed = first[own + of.SEEN] != 1.0 + view.count[at.SUBMITTED] + view.count[at.DONE]
        reset_at = first[own + of.RESET_AT]
        # A reset at time 0 counts as none, as in Gavel's own simulator: the next one need not wait.
        passed = reset_at == 0.0 or view.now_s - reset_at >= self.reset_s
        return bool(changed or passed) if self.at_once else bool(changed and passed)
