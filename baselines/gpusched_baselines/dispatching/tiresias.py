"""Tiresias: queues by the GPU time that a job has had, first come, first served within a queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusched_baselines.planning.cheapest import any_capacity, cheapest_with
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, PlannedPolicy, View, at, kernel

# Columns of the policy's memory of a job, after those of its plan.
ATTAINED, SEEN_S, JOINED_S = 5, 6, 7  # GPU-seconds that it has had, until when, and when it joined its queue [s]

SAME = 1.0 - 1e-9  # of a limit: smaller differences are rounding


@kernel
def plan_tiresias(board: Board, limits: Floats) -> None:
    """Plan the round on an empty cluster, and write the plan of every job to `memory`; nothing else changes.

    Args:
        limits: The GPU-seconds at which a job goes from one queue to the next, (Q - 1,).
    """
    jobs, memory, configs, now = board.jobs, board.memory, board.facts.configs, board.clock[at.NOW]
    active = board.active[: board.count[at.ACTIVE]]
    groups, keys = np.empty(active.shape[0], dtype=np.int64), np.empty(active.shape[0])
    for i in range(active.shape[0]):
        job = active[i]
        _count_attained(board, job)
        waits = jobs[job, at.OLD_CONFIG] < 0.0
        groups[i] = 2 * _queue(limits, memory[job, ATTAINED]) + (1 if waits else 0)
        keys[i] = max(memory[job, JOINED_S], jobs[job, at.SUBMISSION]) if waits else jobs[job, at.BASE_S]
    held, kept = sim.begin_plan(board, True)
    for i in sim.ranked_in_groups(groups, keys):
        job = active[i]
        left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
        config = cheapest_with(board, board.planning_rate, job, left) if any_capacity(board) else -1
        if config >= 0:
            sim.place(board, job, config)
            queue = _queue(limits, memory[job, ATTAINED])
            if queue < limits.shape[0]:
                gpus = configs[config, at.CONFIG_SIZE] / at.UNITS
                memory[job, sim.TIMER] = now + (limits[queue] - memory[job, ATTAINED]) / gpus
        elif jobs[job, at.OLD_CONFIG] >= 0.0:
            memory[job, JOINED_S] = now
    sim.write_plan(board)
    sim.end_plan(board, held, kept)


@kernel
def _count_attained(board: Board, job: int) -> None:
    jobs, memory, now = board.jobs, board.memory, board.clock[at.NOW]
    config = int(jobs[job, at.OLD_CONFIG])
    if config >= 0:
        gpus = board.facts.configs[config, at.CONFIG_SIZE] / at.UNITS
        memory[job, ATTAINED] += gpus * (now - max(memory[job, SEEN_S], jobs[job, at.BASE_S]))
    memory[job, SEEN_S] = now


@kernel
def _queue(limits: Floats, attained: float) -> int:
    queue = 0
    while queue < limits.shape[0] and attained >= limits[queue] * SAME:
        queue += 1
    return queue


@dataclass(frozen=True, slots=True)
class Tiresias(PlannedPolicy):
    """Least attained GPU time in queues, as Tiresias: preemptive between queues, hardly ever within one.

    A job goes to the next queue when it has had so many GPU-seconds. Jobs are placed queue by queue; in a queue those
    that run come first, then those that wait, by the time since which they do: since their submission, or since they
    were preempted. Each takes the cheapest configuration that fits and meets the due date, else the fastest.

    Args:
        limits_gpu_s: The GPU-seconds of the limits between queues, rising, > 0 [GPU-s].

    Raises:
        InputError: A limit is out of its range, or they do not rise.
    """

    limits_gpu_s: tuple[float, ...] = (3250.0, 7200.0)
    name: str = "tiresias"
    job_order: str = "submission"
    preemption: bool = True

    def __post_init__(self) -> None:
        for i, limit in enumerate(self.limits_gpu_s):
            checks.positive(f"limits_gpu_s[{i}]", limit)
        if sorted(set(self.limits_gpu_s)) != list(self.limits_gpu_s):
            raise InputError("limits_gpu_s", list(self.limits_gpu_s), "rising numbers")

    def _plan(self, view: View) -> None:
        plan_tiresias(view.board, np.array(self.limits_gpu_s, dtype=np.float64))
