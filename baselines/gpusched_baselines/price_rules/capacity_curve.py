"""A virtual capacity curve: how many GPUs jobs that can wait may hold in each period, as Google's data centres have it.

Radovanovic et al., IEEE Transactions on Power Systems 2023. Theirs is made a day ahead from forecasts of the demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.planning.cheapest import WORST_CASE, Epochs, any_capacity, check_epochs, left_of, left_of_all
from gpusched_baselines.planning.cheapest import cheapest_with as cheapest
from gpusched_baselines.price_rules.reservations import filled
from gpusched_baselines.price_rules.terms import signal_of, terms_of
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import View, at

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.price_rules.terms import JobTerms


@dataclass(frozen=True, slots=True)
class CapacityCurve:
    """EDF under a limit on the GPUs held that follows the price.

    The curve is the sum over the active jobs, by due date, of GPUs in the cheapest periods until each is due that are
    enough for it. A waiting job starts if the GPUs held are fewer than the curve has now, or if it can wait no longer;
    jobs that run are not paused. Made again in every round from the jobs that are there, not from forecasts of those to
    come. Where the price of energy does not change, the policy is EDF.

    Args:
        epochs: The epochs left of jobs from which the curve is made.
        most_periods: The periods from now on that the curve has; jobs due later use them alone.
        name: Name, as tables show it.

    Raises:
        InputError: A value is out of its range.
    """

    epochs: Epochs = "worst-case"
    most_periods: int = 192
    name: str = "capacity-curve"
    preemption: bool = False

    def __post_init__(self) -> None:
        check_epochs(self.epochs)
        checks.whole("most_periods", self.most_periods)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the curve draws nothing
        """Place waiting jobs by due date as long as the curve has room."""
        waiting = sim.ask_order(view, "due", waiting_only=True).copy()
        if not len(view.prices):
            dispatch(view.board, waiting, left_of_all(view.board, waiting, WORST_CASE))
            return
        known = {job: terms_of(view, job, self.epochs) for job in view.active.tolist()}
        most, change_s = self._curve(view, known)
        held = float(view.nodes[:, at.USABLE].sum() - view.nodes[:, at.FREE].sum())
        for job in waiting.tolist():
            latest_s = view.now_s + known[job].slack_s
            view.set_timer(job, min(change_s, latest_s) if latest_s > view.now_s + 1.0 else change_s)
            config = int(cheapest(view.board, view.board.planning_rate, job, left_of(view.board, job, WORST_CASE)))
            if config < 0 and not any_capacity(view.board):
                continue
            if config >= 0 and (held < most - 1e-6 or known[job].slack_s <= 1.0):
                view.place(job, config)
                held += float(view.configs[config, at.CONFIG_SIZE]) / at.UNITS

    def _curve(self, view: View, known: dict[int, JobTerms]) -> tuple[float, float]:
        """Return the GPUs of the curve now, and when the period ends [s]."""
        order = sim.ask_order(view, "due", waiting_only=False).tolist()
        starts, due_s = view.prices[:, at.PERIOD_START], view.jobs[order, at.DUE]
        later = starts[(starts > view.now_s) & (starts < due_s.max())][: self.most_periods]
        edges = np.concatenate([[view.now_s], later, [max(due_s.max(), view.now_s + 1.0)]])
        if len(later) == self.most_periods:
            edges = edges[:-1]
        price = signal_of(view, float(edges[-1])).value[: len(edges) - 1]
        free = np.full(len(price), float(view.nodes[:, at.USABLE].sum()))
        curve: NDArray[np.float64] = np.zeros(len(price))
        for job in order:
            gpus = float(view.configs[known[job].config, at.CONFIG_SIZE]) / at.UNITS
            length_s = np.clip(np.minimum(edges[1:], view.jobs[job, at.DUE]) - edges[:-1], 0.0, None)
            count = int(np.count_nonzero(length_s))
            taken = filled(price[:count], length_s[:count], free[:count], gpus, known[job].length_s)
            curve[:count] += taken
            free[:count] -= taken
        return float(curve[0]), float(later[0]) if len(later) else np.inf
