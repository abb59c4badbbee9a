"""Time slicing, in which jobs take turns (the rule of PipeSwitch, Gandiva and Salus); and HiveD's virtual clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.dispatch import DispatchPolicy, fifo
from gpusched_baselines.planning.cheapest import ESTIMATE, any_capacity, cheapest_with, left_of_all
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Ints, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


# Columns of the policy's memory of a job.
ATTAINED = 0  # GPU-seconds that it has had
SEEN_S = 1  # time until which they are counted

SAME = 1.0 - 1e-9  # of a quantum: smaller differences are rounding


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """Time slicing over a cluster.

    1. Critical jobs that run keep what they have, and so do others whose quantum is not over.
    2. Critical jobs that wait, by pressure, take the cheapest configuration that fits and meets the due date. If there
       is none, other jobs on the GPU type of the cheapest that would meet it are preempted, first those that lose
       least: by weight times the seconds that resuming takes, then by those seconds alone.
    3. All others, by least GPU-seconds attained per weight, take the cheapest configuration that fits and meets the due
       date, else the fastest that fits; on the node where they were, if they can.
    4. While some of them wait, those that run are re-evaluated as their quanta end.

    Args:
        name: Name, as tables show it.
        quantum_s: How long a job runs before others take its place [s], > 0.
        critical_eur_per_s: The weight [€/s] above which a job is critical, ≥ 0; inf: none is.
        efficiency: Least ratio of a quantum to the seconds that resuming takes a job, ≥ 0; a job with a smaller ratio
            is not sliced: only critical jobs preempt it.

    Raises:
        InputError: One of them is out of its range.
    """

    name: str = "time-slice"
    quantum_s: float = 60.0
    critical_eur_per_s: float = math.inf
    efficiency: float = 10.0
    preemption: bool = True

    def __post_init__(self) -> None:
        checks.positive("quantum_s", self.quantum_s)
        checks.not_negative("efficiency", self.efficiency)
        if not self.critical_eur_per_s >= 0.0:
            raise InputError("critical_eur_per_s", self.critical_eur_per_s, "a number >= 0, or inf")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place all active jobs."""
        jobs, active = view.jobs, view.active
        count_attained(view, active)
        critical = jobs[active, at.WEIGHT] > self.critical_eur_per_s
        for job in active[(jobs[active, at.OLD_CONFIG] >= 0) & (critical | ~self._is_over(view, active))].tolist():
            view.place(job, int(jobs[job, at.OLD_CONFIG]))
        waiting = [job for job in active[critical].tolist() if jobs[job, at.CONFIG] < 0]
        for job in sorted(waiting, key=lambda job: -sim.pressure(view.board, job, epochs_left(view, job))):
            self._place_critical(view, job)
        rest = [job for job in active[~critical].tolist() if jobs[job, at.CONFIG] < 0]
        for job in sorted(rest, key=lambda job: attained_per_weight(view, job)):
            place_cheapest(view, job)
        self._set_timers(view, active[~critical].tolist())

    def _is_over(self, view: View, active: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the quantum of each job is over, (A,); that of a job that is not sliced never is."""
        ran_s = view.now_s - view.jobs[active, at.BASE_S]
        return self._sliced(view, active) & (ran_s >= self.quantum_s * SAME)

    def _sliced(self, view: View, active: NDArray[np.int64]) -> NDArray[np.bool_]:
        sliced: NDArray[np.bool_] = self.quantum_s >= self.efficiency * view.jobs[active, at.RESUMING_S]
        return sliced

    def _place_critical(self, view: View, job: int) -> None:
        config = int(cheapest_with(view.board, view.board.planning_rate, job, epochs_left(view, job)))
        if config < 0 or _is_late(view, job, config):
            wanted = cheapest_in_time(view, job)
            if wanted >= 0 and preempt_for(view, job, wanted, self._victims(view, wanted)):
                config = wanted
            elif config < 0:
                config = self._preempt_for_any(view, job)
        if config >= 0:
            view.place(job, config)

    def _preempt_for_any(self, view: View, job: int) -> int:
        """Preempt jobs for the fastest configuration for which that is possible; return it, -1: there is none."""
        for config in np.argsort(view.tau[job], kind="stable").tolist():
            if np.isfinite(view.tau[job, config]) and preempt_for(view, job, config, self._victims(view, config)):
                return int(config)
        return -1

    def _victims(self, view: View, config: int) -> list[int]:
        jobs, gpu_type = view.jobs, int(view.configs[config, at.CONFIG_TYPE])
        holders = [job for job in view.active.tolist() if jobs[job, at.CONFIG] >= 0]
        own = [job for job in holders if view.configs[int(jobs[job, at.CONFIG]), at.CONFIG_TYPE] == gpu_type]
        others = [job for job in own if not jobs[job, at.WEIGHT] > self.critical_eur_per_s]
        weight, resume_s = jobs[:, at.WEIGHT], jobs[:, at.RESUMING_S]
        return sorted(others, key=lambda job: (weight[job] * resume_s[job], resume_s[job]))

    def _set_timers(self, view: View, others: list[int]) -> None:
        """Set timers at the ends of quanta, if a job waits that is not critical."""
        jobs, now = view.jobs, view.now_s
        waits = any(jobs[job, at.CONFIG] < 0 for job in others)
        sliced = self._sliced(view, np.array(others, dtype=np.int64))
        for job, may_end in zip(others, sliced.tolist(), strict=True):
            stays = keeps(view, job)
            end = (jobs[job, at.BASE_S] if stays else now) + self.quantum_s
            if stays and end <= now:
                end = now + self.quantum_s  # it goes on, since no waiting job fits
            running = jobs[job, at.CONFIG] >= 0
            view.set_timer(job, float(end) if waits and running and may_end else math.inf)


def preempt_for(view: View, job: int, config: int, victims: list[int]) -> bool:
    """Preempt jobs, in this order, until `job` can be placed on `config`; else preempt none."""
    taken: list[tuple[int, int]] = []
    while not sim.can_place(view.board, job, config):
        if len(taken) == len(victims):
            for other, held in taken:
                view.place(other, held)
            return False
        victim = victims[len(taken)]
        taken.append((victim, int(view.jobs[victim, at.CONFIG])))
        view.release(victim)
    return True


def count_attained(view: View, active: NDArray[np.int64]) -> None:
    memory, held = view.memory, view.jobs[active, at.OLD_CONFIG].astype(np.int64)
    gpus = np.where(held >= 0, view.configs[held, at.CONFIG_SIZE] / at.UNITS, 0.0)
    # Without the memory of earlier decisions they are counted from the time at which the job got what it holds.
    since_s = np.maximum(memory[active, SEEN_S], view.jobs[active, at.BASE_S])
    memory[active, ATTAINED] += gpus * (view.now_s - since_s)
    memory[active, SEEN_S] = view.now_s


def attained_per_weight(view: View, job: int) -> tuple[float, float]:
    """Return the GPU-seconds that a job has had over its weight, and those alone."""
    attained, weight = float(view.memory[job, ATTAINED]), float(view.jobs[job, at.WEIGHT])
    return (attained / weight if weight > 0.0 else math.inf), attained


def epochs_left(view: View, job: int) -> float:
    return float(view.jobs[job, at.MAX_EPOCHS] - view.jobs[job, at.EPOCHS])


def _is_late(view: View, job: int, config: int) -> bool:
    time_left = view.jobs[job, at.DUE] - view.now_s
    return bool(sim.misses(epochs_left(view, job) * view.tau[job, config], time_left))


def cheapest_in_time(view: View, job: int) -> int:
    rate = view.planning_rate[int(view.jobs[job, at.APPLICATION])]
    able = [c for c in np.flatnonzero(np.isfinite(view.tau[job])).tolist() if not _is_late(view, job, c)]
    return min(able, key=lambda c: rate[c] * view.tau[job, c], default=-1)


def place_cheapest(view: View, job: int) -> None:
    config = int(cheapest_with(view.board, view.board.planning_rate, job, epochs_left(view, job)))
    if config >= 0:
        view.place(job, config)


def keeps(view: View, job: int) -> bool:
    now, before = (at.CONFIG, at.NODE, at.SLOT), (at.OLD_CONFIG, at.OLD_NODE, at.OLD_SLOT)
    return bool(np.array_equal(view.jobs[job, now], view.jobs[job, before]))


@dataclass(frozen=True, slots=True)
class HiveD:
    """A dispatch rule within every virtual cluster, and then for opportunistic jobs (Zhao et al., OSDI 2020).

    Guaranteed jobs go first, in the rule's order, on cells of their tenant; where no cell is free they wait. Cells are
    bound to hosts by buddy allocation, and preempt opportunistic jobs where they must. Then cells in which no job runs
    are released. Opportunistic jobs, also those that were just preempted, go to the hosts with least in used cells,
    and of these to the ones with most opportunistic GPUs. On an instance without cells the policy is the rule alone.

    Args:
        inner: The rule; its `preemption` is that of the policy.
        name: Name, as tables show it.
    """

    inner: DispatchPolicy = field(default_factory=fifo)
    name: str = "cells-fifo"

    @property
    def preemption(self) -> bool:
        """Return whether a round begins from an empty cluster."""
        return self.inner.preemption

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place the guaranteed jobs, then the opportunistic ones."""
        for opportunistic in (False, True):
            if any_capacity(view.board) and (not opportunistic or (view.board.has_cells and len(view.hosts))):
                order = sim.ask_order(view, self.inner.job_order, waiting_only=not self.preemption)
                _decide(view.board, order, ESTIMATE[self.inner.epochs], opportunistic)


@kernel
def _decide(board: Board, order: Ints, estimated: int, opportunistic: bool) -> None:
    """Place the waiting jobs of one class."""
    left = left_of_all(board, order, estimated)
    if board.has_cells and opportunistic:
        sim.let_empty_cells_go(board)
        sim.survey(board)
    for i in range(order.shape[0]):
        if not any_capacity(board):
            return
        job = order[i]
        if board.jobs[job, at.CONFIG] >= 0 or _is_opportunistic(board, job) != opportunistic:
            continue
        config = cheapest_with(board, board.planning_rate, job, left[i])
        if config < 0:
            continue
        preferred = int(board.jobs[job, at.PREFERRED_NODE])
        if (
            board.has_cells
            and opportunistic
            and (preferred < 0 or board.nodes[preferred, at.FREE] < board.facts.configs[config, at.CONFIG_GPUS])
        ):
            sim.set_preferred_node(board, job, _away(board, config), -1)
        sim.place(board, job, config)


@kernel
def _is_opportunistic(board: Board, job: int) -> bool:
    for c in range(board.tau.shape[1]):
        if board.tau[job, c] < np.inf:
            return sim.is_opportunistic_config(board, c)
    return False


@kernel
def _away(board: Board, config: int) -> int:
    """Find the host with free GPUs with least in bound cells, then most opportunistic GPUs, then by index; -1: none."""
    nodes, configs, first = board.nodes, board.facts.configs, sim.first_host(board)
    best, best_key = -1, (0, 0)
    for h in range(board.hosts.shape[0]):
        n = first + h
        if nodes[n, at.NODE_TYPE] != configs[config, at.CONFIG_TYPE]:
            continue
        opportunistic = nodes[n, at.USABLE] - nodes[n, at.FREE] - _bits(board.hosts[h, sim.TAKEN])
        key = (_bits(board.hosts[h, sim.TAKEN]), -opportunistic)
        if nodes[n, at.FREE] >= configs[config, at.CONFIG_GPUS] and (best < 0 or key < best_key):
            best, best_key = n, key
    return best


@kernel
def _bits(mask: int) -> int:
    count = 0
    while mask > 0:
        count += mask & 1
        mask >>= 1
    return count
