"""What rules by price know of a job in our world: its length, how long it may wait, and the prices to come.

A job of GAIA has one length and a queue. Here it has a configuration, epochs of a distribution, and a due date.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.cheapest import ESTIMATE, WORST_CASE, Epochs, left_of, preference
from gpusched_baselines.price_rules.rules import HOUR
from gpusched_baselines.price_rules.signal import Signal
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import View, at

if TYPE_CHECKING:
    from gpusched_env.simulator.kernels import Ints


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long a job may wait.

    Args:
        short_s: Jobs of a smaller known length are in the first queue [s], ≥ 0.
        limits_s: How long jobs of the first and the second queue may wait [s], ≥ 0.
        meets_due_dates: Whether they wait at most as long as the due date can still be met in the worst case.

    Raises:
        InputError: A value is out of its range.
    """

    short_s: float = 2 * HOUR
    limits_s: tuple[float, float] = (6 * HOUR, 24 * HOUR)
    meets_due_dates: bool = True

    def __post_init__(self) -> None:
        checks.seconds("waiting.short_s", self.short_s)
        if len(self.limits_s) != 2:
            raise InputError("waiting.limits_s", self.limits_s, "two times, one for each queue")
        for i, limit_s in enumerate(self.limits_s):
            checks.seconds(f"waiting.limits_s[{i}]", limit_s)

    def limit_s(self, length_s: float) -> float:
        return self.limits_s[int(length_s >= self.short_s)]


@dataclass(frozen=True, slots=True)
class JobTerms:
    """What a rule knows of a job now.

    Attributes:
        config: The configuration for which it plans: the held one, else the cheapest that meets the due date in the
            worst case, whatever is free, else the fastest.
        length_s: How long the job still runs on it, as far as known [s].
        slack_s: How long it could wait from now on and meet its due date in the worst case [s], the restart of one that
            runs included; below 0: it can not.
        restart_s: What a pause costs [s].
    """

    config: int
    ready_s: float
    length_s: float
    slack_s: float
    restart_s: float


def terms_of(view: View, job: int, epochs: Epochs) -> JobTerms:
    """Return what a rule knows that takes `epochs` for the epochs left."""
    board, jobs = view.board, view.jobs
    config = int(jobs[job, at.CONFIG])
    worst = float(left_of(board, job, WORST_CASE))
    restart_s = float(max(jobs[job, at.RESUMING_S], jobs[job, at.RESTART_S]))
    if config < 0:
        order: Ints = np.empty(len(view.configurations), dtype=np.int64)
        preference(board, job, worst, order)
        config = int(order[0])
        ready_s = restart_s if jobs[job, at.START_S] >= 0.0 else float(jobs[job, at.STARTING_S])
        lost_s = ready_s
    else:
        ready_s = max(0.0, float(jobs[job, at.READY_S]) - view.now_s)
        lost_s = restart_s
    tau = float(view.tau[job, config])
    known = worst if epochs == "worst-case" else float(left_of(board, job, ESTIMATE[epochs]))
    slack_s = float(jobs[job, at.DUE]) - view.now_s - lost_s - worst * tau
    return JobTerms(config, ready_s, ready_s + known * tau, slack_s, restart_s)


def signal_of(view: View, until_s: float) -> Signal:
    """Return the prices of energy from now until a later time [s], PUE included; where not published, forecasts."""
    starts = view.prices[:, at.PERIOD_START]
    inner = starts[(starts > view.now_s + sim.MISSED_S) & (starts < until_s)]
    edges = np.concatenate([[view.now_s], inner, [max(until_s, view.now_s + 1.0)]])
    prices = np.empty(len(edges) - 1)
    sim.forecast_prices(view.board, edges, prices)
    periods = np.maximum(np.searchsorted(starts, edges[:-1] + sim.MISSED_S, side="right") - 1, 0)
    known = periods < view.count[at.PUBLISHED]  # their own numbers: rules compare them for equality
    rows = view.prices[periods[known]]
    prices[known] = rows[:, at.PERIOD_PRICE] * rows[:, at.PERIOD_PUE]
    return Signal(edges[:-1], prices)
