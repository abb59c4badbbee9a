"""CarbonScaler on a cluster: jobs are scaled by the price, hours reserved in the order of due dates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.planning.cheapest import ESTIMATE, WORST_CASE, Epochs, check_epochs, left_of_all
from gpusched_baselines.price_rules.reservations import Ladder, scaled
from gpusched_baselines.price_rules.terms import signal_of, terms_of
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import View, at

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.simulator.kernels import Ints


@dataclass(frozen=True, slots=True)
class CarbonScaler:
    """Each job is planned by marginal speed over marginal cost in all periods until its due date, and follows the plan.

    Jobs reserve GPUs of a type by due date. A job is planned on the type that it runs on or, before it starts, on that
    where its plan costs least. Planned again in every round for the epochs that are left. Every change of size costs a
    restart; plans do not count them, as published. A job that no plan gets done in time runs as by EDF. So does every
    job where the price of energy does not change.

    Args:
        epochs: The epochs left that a plan covers.
        most_periods: The periods from now on that plans use; a job due later is planned until their end.
        name: Name, as tables show it.

    Raises:
        InputError: A value is out of its range.
    """

    epochs: Epochs = "worst-case"
    most_periods: int = 192
    name: str = "carbonscaler"
    preemption: bool = False

    def __post_init__(self) -> None:
        check_epochs(self.epochs)
        checks.whole("most_periods", self.most_periods)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - plans draw nothing
        """Plan all active jobs, and place them as planned for the present period."""
        if not len(view.prices):
            waiting = sim.ask_order(view, "due", waiting_only=True)
            dispatch(view.board, waiting, left_of_all(view.board, waiting, WORST_CASE))
            return
        order = sim.ask_order(view, "due", waiting_only=False)
        plans = self._plans(view, order)
        for job, config in plans.items():
            if config is not None and view.jobs[job, at.CONFIG] not in {-1.0, float(config)}:
                view.release(job)
        for job, config in plans.items():
            if view.jobs[job, at.CONFIG] >= 0.0:
                continue
            if config is None:
                one = np.array([job], dtype=np.int64)
                dispatch(view.board, one, left_of_all(view.board, one, WORST_CASE))
            elif config >= 0:
                view.place(job, config)

    def _plans(self, view: View, order: Ints) -> dict[int, int | None]:
        """Return the configuration of each job now, -1 to wait, None without a plan; set timers at the next period."""
        due_s = view.jobs[order, at.DUE]
        starts = view.prices[:, at.PERIOD_START]
        later = starts[(starts > view.now_s) & (starts < due_s.max())][: self.most_periods]
        edges = np.concatenate([[view.now_s], later, [np.inf]])
        price = signal_of(view, float(later[-1]) + 1.0 if len(later) else view.now_s).value
        free = np.repeat(_gpus(view)[:, None], len(price), axis=1)
        left = left_of_all(view.board, order, ESTIMATE[self.epochs])
        found = {}
        for job, epochs in zip(order.tolist(), left.tolist(), strict=True):
            found[job] = _plan(view, job, epochs, Periods(edges, price, free))
            view.set_timer(job, float(edges[1]))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Periods:
    """The periods from now on.

    Attributes:
        edge_s: When they begin, and when the last one ends [s], (H + 1,).
        price: Price of each, (H,).
        free: GPUs of each type that are not reserved, (V, H): plans reserve them.
    """

    edge_s: NDArray[np.float64]
    price: NDArray[np.float64]
    free: NDArray[np.float64]


def _plan(view: View, job: int, epochs: float, periods: Periods) -> int | None:
    """Plan a job and reserve its GPUs; return its configuration now, -1 to wait, None: it can not be done in time."""
    terms = terms_of(view, job, "worst-case")
    end_s = float(view.jobs[job, at.DUE]) - terms.ready_s
    length_s = np.clip(np.minimum(periods.edge_s[1:], end_s) - periods.edge_s[:-1], 0.0, None)
    count = int(np.count_nonzero(length_s))
    best: tuple[float, Ladder, Ints] | None = None
    for ladder in ladders(view, job):
        free, price = periods.free[ladder.gpu_type, :count], periods.price[:count]
        steps, undone = scaled(ladder, price, length_s[:count], free, epochs)
        cost = float((np.append(0.0, ladder.rate)[steps] * price * length_s[:count]).sum())
        if undone <= epochs * 1e-9 and (best is None or cost < best[0]):
            best = cost, ladder, steps
    if best is None:
        config = view.configs[terms.config]
        until = int(np.searchsorted(periods.edge_s[1:], view.now_s + terms.length_s)) + 1
        periods.free[config[at.CONFIG_TYPE], :until] -= config[at.CONFIG_SIZE] / at.UNITS
        return None
    _, ladder, steps = best
    periods.free[ladder.gpu_type, :count] -= np.append(0.0, ladder.gpus)[steps]
    return int(np.append(-1, ladder.config)[steps[0]]) if count else -1


def ladders(view: View, job: int) -> list[Ladder]:
    """List the whole GPUs that a job may use by GPU type: of that on which it runs alone, else of every one."""
    tau, configs = view.tau[job], view.configs
    whole = np.isfinite(tau) & (configs[:, at.CONFIG_UNITS] == 0) & (configs[:, at.CONFIG_SPREAD] == 0)
    held = int(view.jobs[job, at.CONFIG])
    if held >= 0:
        whole &= configs[:, at.CONFIG_TYPE] == configs[held, at.CONFIG_TYPE]
    found = []
    for gpu_type in np.unique(configs[whole, at.CONFIG_TYPE]).tolist():
        of_type = np.flatnonzero(whole & (configs[:, at.CONFIG_TYPE] == gpu_type))
        of_type = of_type[np.argsort(configs[of_type, at.CONFIG_SIZE], kind="stable")]
        faster = 1.0 / tau[of_type] > np.maximum.accumulate(np.append(0.0, 1.0 / tau[of_type]))[:-1]
        config = of_type[faster]
        gpus = configs[config, at.CONFIG_SIZE] / at.UNITS
        found.append(
            Ladder(
                gpu_type,
                config,
                gpus,
                1.0 / tau[config],
                view.planning_rate[int(view.jobs[job, at.APPLICATION]), config],
            )
        )
    return found


def _gpus(view: View) -> NDArray[np.float64]:
    counts = np.zeros(len(view.capacity))
    np.add.at(counts, view.nodes[:, at.NODE_TYPE], view.nodes[:, at.USABLE])
    return counts
