"""A run that STS-X decides with given controls, its waste, and the run of STS-X alone for comparison."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.adaptation_env.controls import adaptation_of, control_count, controls_of, forget_cheapest
from gpusched_baselines.adaptation_env.observation import observe
from gpusched_baselines.planning.cheapest import is_by_utilisation, with_co_runners, write_times
from gpusched_baselines.sts_x.policy import StsX, execute_plan
from gpusched_env.model import Instance
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator import stepping
from gpusched_env.simulator.kernels import Board, Floats, at, kernel
from gpusched_env.simulator.stepping import Hidden, State

POLICY = StsX()


class AdaptedRun:
    """A run of one instance, at an open round that STS-X has not decided yet, or at its end.

    Args:
        instance: The instance.
        record: Whether intervals are kept, for figures.
    """

    def __init__(self, instance: Instance, *, record: bool = False) -> None:
        self.state = State(instance, record=record)
        board = self.state.board
        self._plan = with_co_runners(board)  # the same arrays except for times on shared GPUs
        self._beside = self._plan is not board
        self._by_utilisation = is_by_utilisation(board)  # rates depend on the active jobs
        self.state.grow_arrays()
        next_round(board, self.state.hidden)
        self._rate = POLICY.rates(board)

    @property
    def over(self) -> bool:
        count = self.state.board.count
        return bool(count[at.DONE] == len(self.state.instance.jobs))

    def decide(self, action: NDArray[np.float64], rounds: int) -> int:
        """Run STS-X for `rounds` rounds with the controls of an action, fewer if the run ends; return how many.

        Raises:
            StalledError: Every job waits for ever (see `gpusched_env.simulate`).
        """
        state, plan = self.state, self._plan
        board, count = state.board, state.board.count
        controls = controls_of(action, board.facts.configs, board.capacity.shape[0])
        jobs, hidden, done = len(state.instance.jobs), state.hidden, 0
        while done < rounds and count[at.DONE] < jobs:
            rate = POLICY.rates(board) if self._by_utilisation else self._rate
            write_plan_times(board, plan, self._beside)
            POLICY.plan_adapted(plan, adaptation_of(controls, plan, rate))
            if controls.priced:  # the cheapest configuration at these rates may differ in the next round
                forget_cheapest(board)
            sim.order_by(board, sim.PRESSURE, False)
            execute_plan(board, board.order[: count[at.TO_ASK]])
            stepping.commit_round(board, hidden)
            if board.count[at.LOGGING]:
                state.grow_arrays()
                hidden = state.hidden
            next_round(board, hidden)
            done += 1
        stepping.check_stalled(board, POLICY.name)
        self._rate = POLICY.rates(board) if self._by_utilisation else self._rate
        return done

    def observe(self, seen: Floats, controls: str = "round") -> None:
        """Write the observation of the open round, (26 + 6 V + 17 K,), with `energy` 23 more; all 0 at the end."""
        seen[:] = 0.0
        if not self.over:
            write_plan_times(self.state.board, self._plan, self._beside)
            observe(self._plan, self._rate, seen, controls == "energy")

    def costs(self) -> tuple[float, float]:
        """Return the energy cost and the tardiness cost until now [€]."""
        clock = self.state.board.clock
        return float(clock[at.BILL]), float(clock[at.TARDINESS_COST])

    def waste(self) -> float:
        """Return the waste until now [€]; see `waste_until_now`."""
        return float(waste_until_now(self.state.board, self.state.hidden))


@kernel
def next_round(board: Board, hidden: Hidden) -> bool:
    """Run to the next round with an active job, and open it from an empty cluster; return False at the end."""
    while stepping.advance(board, hidden):
        if board.count[at.ACTIVE] > 0:
            stepping.begin_round(board, True)
            return True
    return False


@kernel
def write_plan_times(board: Board, plan: Board, beside: bool) -> None:
    """Write the times with which the round is planned, where they differ from those of `board`."""
    if not beside:
        return
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        for c in range(board.tau.shape[1]):
            plan.tau[job, c] = board.tau[job, c]
    write_times(board, plan.tau)


@kernel
def waste_until_now(board: Board, hidden: Hidden) -> float:
    """Return the cost beyond the unavoidable cost [€].

    waste = energy cost - Σ epochs done · least cost of an epoch + Σ ω · growth of the certain tardiness.

    The sums are over the jobs submitted; the least cost is that in full nodes, of all configurations that the job may
    ever use: shares, too, that profiling has not opened yet. So it does not depend on the run. The certain tardiness is
    that of a job that runs from now on in its fastest configuration until it has done the epochs that it *needs*, which
    no policy knows. At the end waste is the total cost less a constant of the instance, for any policy: it is
    potential-based shaping (Ng, Harada and Russell, 1999) of the cost.
    """
    jobs, now, total = board.jobs, board.clock[at.NOW], board.clock[at.BILL]
    for job in range(board.count[at.SUBMITTED]):
        needed, (fastest, least) = hidden.outcome[job, at.NEEDED], _least_of_epoch(board, hidden, job)
        end = jobs[job, at.END_S]
        if np.isnan(end):
            end = now + max(0.0, needed - jobs[job, at.EPOCHS]) * fastest
        earliest, due = jobs[job, at.SUBMISSION] + needed * fastest, jobs[job, at.DUE]
        total += jobs[job, at.WEIGHT] * (max(0.0, end - due) - max(0.0, earliest - due))
        total -= least * jobs[job, at.EPOCHS]
    return total


@kernel
def _least_of_epoch(board: Board, hidden: Hidden, job: int) -> tuple[float, float]:
    """Return the least seconds and the least cost of an epoch of a job [€]; the cost is 0 if nothing fits it."""
    jobs, rate = board.jobs, board.least_rate[int(board.jobs[job, at.APPLICATION])]
    if not board.has_shares or board.facts.sharing[at.PROFILE_S] == 0.0:
        config = int(jobs[job, at.CHEAPEST])
        return jobs[job, at.MIN_TAU], rate[config] * jobs[job, at.CHEAPEST_TAU] if config >= 0 else 0.0
    fastest, least = np.inf, np.inf
    for c in range(rate.shape[0]):
        if hidden.tau[job, c] < np.inf:
            fastest, least = min(fastest, hidden.tau[job, c]), min(least, hidden.tau[job, c] * rate[c])
    return fastest, least if least < np.inf else 0.0


def full_cluster_eur_per_h(board: Board) -> float:
    """Return what the full cluster costs in an hour [€]; 1 where energy is free. It is the scale of rewards."""
    types, gpus = board.nodes[:, at.NODE_TYPE], board.nodes[:, at.NODE_GPUS]
    return float(3600.0 * board.node_rate[types, gpus].sum()) or 1.0


MOST_KEPT = 1_000  # workloads whose runs are kept


@dataclass(frozen=True, slots=True, eq=False)
class BaseRun:
    """A run of STS-X alone.

    Attributes:
        time_s: The beginning of every round, and the end [s], (R + 1,).
        waste_eur: The waste until then [€], (R + 1,).
        total_eur: Its cost in the end [€].
    """

    time_s: NDArray[np.float64]
    waste_eur: NDArray[np.float64]
    total_eur: float

    @classmethod
    def of(cls, instance: Instance) -> BaseRun:
        run, action = AdaptedRun(instance), np.zeros(control_count(len(instance.gpu_types)))
        clock = run.state.board.clock
        points = [(0.0, 0.0), (float(clock[at.NOW]), run.waste())]
        while not run.over:
            run.decide(action, 1)
            points.append((float(clock[at.NOW]), run.waste()))
        time_s, waste_eur = np.array(points).T
        return cls(time_s, waste_eur, float(clock[at.BILL] + clock[at.TARDINESS_COST]))

    def waste_at(self, time_s: float) -> float:
        """Return the waste until a time [s], linear between rounds; after the end that at the end [€]."""
        return float(np.interp(time_s, self.time_s, self.waste_eur))


class BaseRuns:
    """The runs of STS-X of a process: each is made once, and the latest are kept."""

    def __init__(self) -> None:
        self._runs: OrderedDict[Hashable, BaseRun] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, instance: Instance) -> BaseRun:
        """Return the run on an instance that `key` identifies."""
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
                return self._runs[key]
        made = BaseRun.of(instance)
        with self._lock:
            self._runs[key] = made
            while len(self._runs) > MOST_KEPT:
                self._runs.popitem(last=False)
        return made


BASE_RUNS = BaseRuns()
