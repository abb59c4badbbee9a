"""The multifactor priority of Slurm: age, size, fair share and tardiness weight; its backfilling in that order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.backfill.free_gpus import asked_for, refuse_cells
from gpusched_baselines.backfill.slurm import check_backfill, most_reservations, plan_slurm
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import ActiveJobs, View, at

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.model import Instance

# Columns of the policy's memory, after those of a plan. Of a job:
GPUS = 5  # GPUs that it has held since the last round
SEEN_S = 6  # until when they are counted [s]
# And in the first row, of the run:
FIRST = 7  # job before which all are complete and counted
COUNTED_S = 8  # until when usage has decayed [s]
USAGE = 9  # first of the columns with the decayed usage of every tenant [GPU-s]

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Multifactor:
    """Slurm's multifactor priority (priority/multifactor, NO_FAIR_TREE); see `SlurmBackfill` for the rest.

    The priority of a job is the sum of weights times factors from 0 to 1, rounded down; the largest goes first, equal
    ones by index:

    - age: its wait over `max_age_s`, at most 1;
    - size: the mean of its nodes over all nodes and its GPUs over all GPUs, of what it asks for first;
    - fair share: F = 2^(-U / S) with U the tenant's part of the usage of all tenants, in GPU-seconds, and S its share,
      the same for every tenant up to the last one that has submitted; usage decays with a half-life;
    - weight: its tardiness weight over the largest one of the active jobs, in place of the quality of service.

    Where a reservation stops a job that fits, priorities are computed again after `period_s`.

    Args:
        name: Name, as tables show it.
        age: Weight of the age, ≥ 0. The weights' defaults are those of the example in Slurm's documentation.
        size: Weight of the size, ≥ 0.
        fair_share: Weight of the fair share, ≥ 0.
        tardiness: Weight of the tardiness weight, ≥ 0.
        max_age_s: Wait from which on the age is 1 [s], > 0; by default 7 days, as in Slurm (PriorityMaxAge).
        half_life_s: Half-life of usage [s], > 0; inf: none; by default 7 days (PriorityDecayHalfLife).
        favor_small: Whether the factor of the size is 1 less the mean (PriorityFavorSmall).
        period_s: Time between priorities [s], > 0 (PriorityCalcPeriod).
        reservations: Most reservations, ≥ 0 (bf_job_part_count_reserve); None: no limit.
        window_s: How far ahead reservations may begin [s], > 0 (bf_window).
        plugin: Whether there is a backfill plugin.

    Raises:
        InputError: One of them is out of its range.
    """

    name: str = "multifactor"
    age: float = 1000.0
    size: float = 1000.0
    fair_share: float = 10_000.0
    tardiness: float = 0.0
    max_age_s: float = 7 * DAY_S
    half_life_s: float = 7 * DAY_S
    favor_small: bool = False
    period_s: float = 300.0
    reservations: int | None = None
    window_s: float = DAY_S
    plugin: bool = True
    preemption: bool = False

    def __post_init__(self) -> None:
        for name in ("age", "size", "fair_share", "tardiness"):
            checks.not_negative(name, getattr(self, name))
        for name in ("max_age_s", "period_s"):
            checks.positive(name, getattr(self, name))
        if self.half_life_s != math.inf:
            checks.positive("half_life_s", self.half_life_s)
        if not isinstance(self.favor_small, bool):
            raise InputError("favor_small", self.favor_small, "True or False")
        check_backfill(self.reservations, self.window_s, self.plugin)

    def check(self, instance: Instance) -> None:
        """Check that an instance has no cells.

        Raises:
            InputError: It has.
        """
        refuse_cells(instance)

    def memory_columns(self, instance: Instance) -> int:
        """Return the columns of memory: nine, and one for every tenant that jobs have."""
        return USAGE + int(instance.jobs.tenant.max()) + 1

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Start waiting jobs.

        Raises:
            InputError: The memory has fewer columns than `memory_columns`.
        """
        board, active = view.board, view.active
        tenants, columns = int(board.jobs[active, at.TENANT].max()) + 1, board.memory.shape[1]
        if columns < USAGE + tenants:
            raise InputError("memory_columns", columns, f"{USAGE + tenants} or more")
        self._count_usage(view)
        order = sim.ask_order(view, self._by_priority, waiting_only=True)
        most = most_reservations(self.reservations, order)
        refused = plan_slurm(board, order, self.plugin, most, self.window_s)
        config = board.jobs[active, at.CONFIG].astype(np.int64)
        board.memory[active, GPUS] = np.where(config >= 0, board.facts.configs[config, at.CONFIG_SIZE] / at.UNITS, 0.0)
        board.memory[active, SEEN_S] = view.now_s
        for job in active.tolist():
            view.set_timer(job, view.now_s + self.period_s if refused else np.inf)

    def _by_priority(self, active: ActiveJobs) -> NDArray[np.float64]:
        return -self.priorities(active.view, active.index)

    def priorities(self, view: View, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the priorities of active jobs, (A,): whole numbers, (A,)."""
        tenants = int(view.jobs[: int(view.count[at.SUBMITTED]), at.TENANT].max()) + 1
        rows, usage = view.jobs[jobs], view.memory[0, USAGE : USAGE + tenants]
        age = np.minimum(1.0, (view.now_s - rows[:, at.SUBMISSION]) / self.max_age_s)
        part = usage[rows[:, at.TENANT].astype(np.int64)] / max(float(usage.sum()), 1e-300)
        weight = rows[:, at.WEIGHT] / max(float(rows[:, at.WEIGHT].max(initial=0.0)), 1e-300)
        found: NDArray[np.float64] = self.age * age + self.fair_share * 2.0 ** (-part * len(usage))
        found = found + self.tardiness * weight + (self.size * self._sizes(view, jobs) if self.size > 0.0 else 0.0)
        return np.floor(found)

    def _sizes(self, view: View, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
        config = asked_for(view.board, jobs)[:, 0]
        nodes = view.configs[config, at.CONFIG_NODES] / len(view.nodes)
        gpus = view.configs[config, at.CONFIG_SIZE] / at.UNITS / view.nodes[:, at.NODE_GPUS].sum()
        mean = np.where(config >= 0, np.minimum(1.0, 0.5 * (nodes + gpus)), 0.0)
        return 1.0 - mean if self.favor_small else mean

    def _count_usage(self, view: View) -> None:
        """Let usage decay until now, and add what jobs have held since the last round, each second with its decay."""
        memory, active, now = view.memory, view.active, view.now_s
        run, half = memory[0], self.half_life_s
        run[USAGE:] *= 2.0 ** (-(now - run[COUNTED_S]) / half)
        # Without the memory of earlier decisions, from the time on at which a job got what it holds.
        new = active[(memory[active, GPUS] == 0.0) & (view.jobs[active, at.OLD_CONFIG] >= 0)]
        held = view.configs[view.jobs[new, at.OLD_CONFIG].astype(np.int64), at.CONFIG_SIZE]
        memory[new, GPUS], memory[new, SEEN_S] = held / at.UNITS, view.jobs[new, at.BASE_S]
        oldest = int(active.min())
        jobs = np.arange(min(int(run[FIRST]), oldest), int(view.count[at.SUBMITTED]))
        jobs = jobs[memory[jobs, GPUS] > 0.0]
        end = view.jobs[jobs, at.END_S]
        to_end, to_begin = now - np.where(np.isnan(end), now, end), now - memory[jobs, SEEN_S]
        length = to_begin - to_end
        if half < math.inf:
            length = half / math.log(2.0) * (2.0 ** (-to_end / half) - 2.0 ** (-to_begin / half))
        np.add.at(run, USAGE + view.jobs[jobs, at.TENANT].astype(np.int64), memory[jobs, GPUS] * length)
        memory[jobs[~np.isnan(end)], GPUS] = 0.0
        run[FIRST], run[COUNTED_S] = oldest, now
