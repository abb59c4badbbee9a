"""Sharing by priority, as FIKIT does: jobs of the highest class own GPUs, others use the GPU time that these leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpusched_baselines.shared_gpus.gpus import (
    Gpus,
    look_again,
    look_at_gpus,
    may_own,
    opportunistic_shares,
    place_guaranteed,
    put_share,
)
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.configuration import MOST_PRIORITIES
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Ints, Mask, PlannedPolicy, View, at, kernel, lean_kernel


@kernel
def plan_fill(board: Board, most_busy: float, number: int) -> None:
    """Plan the round on an empty cluster, and write the plan of every job to `memory`; nothing else changes."""
    jobs, active = board.jobs, board.active[: board.count[at.ACTIVE]]
    opportunistic, rank = opportunistic_shares(board), classes(board, number)
    held, kept = sim.begin_plan(board, True)
    for job in active:
        if jobs[job, at.OLD_CONFIG] >= 0.0 and not _has_just_profiled(board, job):
            sim.place(board, job, int(jobs[job, at.OLD_CONFIG]))
    gpus, order = look_at_gpus(board, opportunistic), _by_class(board, rank)
    for i in order:
        _succeed(board, opportunistic, gpus, active[i])
    closed, full = np.zeros(board.nodes.shape[0], dtype=np.int8), np.zeros(opportunistic.shape[0], dtype=np.int8)
    for i in order:
        job = active[i]
        if jobs[job, at.CONFIG] >= 0.0:
            continue
        if rank[i] == number - 1:
            placed = place_guaranteed(board, opportunistic, gpus, closed, full, job, -1.0)
            placed = placed or place_guaranteed(board, opportunistic, gpus, closed, np.zeros_like(full), job, np.inf)
            if placed or _take_over(board, opportunistic, gpus, rank, i):
                continue
        _fill_in(board, most_busy, opportunistic, gpus, rank[i], job)
    sim.write_plan(board)
    sim.end_plan(board, held, kept)


@lean_kernel
def _has_just_profiled(board: Board, job: int) -> bool:
    """Whether the first stage of a running job ends now: it has run on whole GPUs for `profile_s`, and may share."""
    if not board.has_shares:
        return False
    jobs, profile_s = board.jobs, board.facts.sharing[at.PROFILE_S]
    whole = board.facts.configs[int(jobs[job, at.OLD_CONFIG]), at.CONFIG_UNITS] == 0
    return whole and profile_s > 0.0 and jobs[job, at.READY_S] + profile_s == board.clock[at.NOW]


@kernel
def classes(board: Board, number: int) -> Ints:
    """Return the class of every active job, 0 to `number` - 1, (A,): the rank of its weight among submitted ones."""
    weights = board.jobs[: board.count[at.SUBMITTED], at.WEIGHT]
    rank = np.empty(board.count[at.ACTIVE], dtype=np.int64)
    for i in range(rank.shape[0]):
        weight, halves = board.jobs[board.active[i], at.WEIGHT], 0
        for other in weights:
            halves += 2 if other < weight else 1 if other == weight else 0
        rank[i] = min(number - 1, number * halves // (2 * weights.shape[0]))
    return rank


@kernel
def _by_class(board: Board, rank: Ints) -> Ints:
    """Return the places in `active` by class, and then by pressure, the greatest first."""
    jobs, keys = board.jobs, np.empty(rank.shape[0])
    for i in range(rank.shape[0]):
        job = board.active[i]
        keys[i] = -sim.pressure(board, job, jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS])
    return sim.ranked_in_groups(-rank, keys)


@kernel
def _succeed(board: Board, opportunistic: Mask, gpus: Gpus, job: int) -> None:
    jobs, config = board.jobs, int(board.jobs[job, at.CONFIG])
    if config < 0 or opportunistic[config] == 0:
        return
    node, gpu = int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
    if gpus.guaranteed[node * sim.slots(board) + gpu] == 0:
        _as_guaranteed(board, opportunistic, gpus, job, node, gpu)


@kernel
def _as_guaranteed(board: Board, opportunistic: Mask, gpus: Gpus, job: int, node: int, gpu: int) -> bool:
    """Make a job the guaranteed job of a GPU, in place of its share of it, if any; return whether that fits."""
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    held = int(jobs[job, at.CONFIG])
    if held >= 0:
        sim.release(board, job)
    for c in range(opportunistic.shape[0]):
        share = configs[c, at.CONFIG_UNITS] > 0 and opportunistic[c] == 0
        right = share and configs[c, at.CONFIG_TYPE] == nodes[node, at.NODE_TYPE] and board.tau[job, c] < np.inf
        if right and sim.has_room(board, c, node, gpu, False) and sim.within_quota(board, job, c):
            put_share(board, opportunistic, gpus, job, c, node, gpu)
            return True
    if held >= 0:
        put_share(board, opportunistic, gpus, job, held, node, gpu)
    return False


@kernel
def _take_over(board: Board, opportunistic: Mask, gpus: Gpus, rank: Ints, i: int) -> bool:
    """Make a job guaranteed in place of one of a lower class, on the GPU with least work of its class or above.

    The former guaranteed job stays with an opportunistic share if one fits; opportunistic jobs of a lower class than
    its own are preempted for it. `rank`, (A,), are the classes of the active jobs, of which the job is number `i`.
    """
    jobs, active, job = board.jobs, board.active, board.active[i]
    owner, least = -1, np.inf
    for k in range(rank.shape[0]):
        config = int(jobs[active[k], at.CONFIG])
        if (
            config < 0
            or board.facts.configs[config, at.CONFIG_UNITS] == 0
            or opportunistic[config] != 0
            or rank[k] >= rank[i]
        ):
            continue
        if not sim.can_resize(board, job, config):
            continue
        if board.tau[job, config] < np.inf and _work_of(board, rank, k, rank[i]) < least:
            owner, least = k, _work_of(board, rank, k, rank[i])
    if owner < 0:
        return False
    other = active[owner]
    config, node, gpu = int(jobs[other, at.CONFIG]), int(jobs[other, at.NODE]), int(jobs[other, at.SLOT])
    sim.release(board, other)
    put_share(board, opportunistic, gpus, job, config, node, gpu)
    for k in range(rank.shape[0]):  # opportunistic jobs of a lower class than the former guaranteed job
        there = int(jobs[active[k], at.NODE]) == node and int(jobs[active[k], at.SLOT]) == gpu
        if (
            there
            and rank[k] < rank[owner]
            and _opportunistic_share(board, opportunistic, rank[owner], other, node, gpu) < 0
        ):
            sim.release(board, active[k])
    share = _opportunistic_share(board, opportunistic, rank[owner], other, node, gpu)
    if share >= 0:
        put_share(board, opportunistic, gpus, other, share, node, gpu)
    return True


@lean_kernel
def _utilisation(board: Board, gpu_type: int, application: int) -> float:
    if not board.has_shares or board.facts.utilisation.shape[0] == 0:
        return 1.0
    return board.facts.utilisation[gpu_type, application]


@kernel
def _work_of(board: Board, rank: Ints, k: int, least_rank: int) -> float:
    """Sum the utilisations of jobs of a class from `least_rank` up on the GPU of active job k; 1 each if unknown."""
    jobs, active, total = board.jobs, board.active, 0.0
    for other in range(rank.shape[0]):
        together = jobs[active[other], at.NODE] == jobs[active[k], at.NODE]
        if together and jobs[active[other], at.SLOT] == jobs[active[k], at.SLOT] and rank[other] >= least_rank:
            v = board.nodes[int(jobs[active[k], at.NODE]), at.NODE_TYPE]
            total += _utilisation(board, v, int(jobs[active[other], at.APPLICATION]))
    return total


@lean_kernel
def _may_be(board: Board, opportunistic: Mask, own: int, job: int, config: int) -> bool:
    """Return whether a job of class `own` may use an opportunistic share: none of a priority above its class."""
    return (
        opportunistic[config] != 0
        and board.facts.configs[config, at.CONFIG_PRIORITY] <= own
        and board.tau[job, config] < np.inf
        and sim.can_resize(board, job, config)
    )


@kernel
def _opportunistic_share(board: Board, opportunistic: Mask, own: int, job: int, node: int, gpu: int) -> int:
    """Find a share with which a job of class `own` fits on a GPU with an opportunistic share; -1: none."""
    for c in range(opportunistic.shape[0]):
        right = board.facts.configs[c, at.CONFIG_TYPE] == board.nodes[node, at.NODE_TYPE]
        if right and _may_be(board, opportunistic, own, job, c) and sim.has_room(board, c, node, gpu, False):
            return c
    return -1


@kernel
def _fill_in(board: Board, most_busy: float, opportunistic: Mask, gpus: Gpus, own: int, job: int) -> None:
    """Place a job with an opportunistic share where it is fastest; on an idle GPU if it would be late, or does not fit.

    A job that may use only opportunistic shares takes any of them on an idle GPU.
    """
    jobs, nothing = board.jobs, np.zeros(opportunistic.shape[0], dtype=np.int8)
    closed = np.zeros(board.nodes.shape[0], dtype=np.int8)
    config, node, gpu, seconds = _fastest_share(board, most_busy, opportunistic, gpus, own, job)
    left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
    late = config < 0 or sim.misses(left * seconds, jobs[job, at.DUE] - board.clock[at.NOW])
    if late and place_guaranteed(board, opportunistic, gpus, closed, nothing, job, -1.0):
        return
    if config >= 0:
        put_share(board, opportunistic, gpus, job, config, node, gpu)
    elif not may_own(board, opportunistic, job) and place_guaranteed(board, nothing, gpus, closed, nothing, job, -1.0):
        config, node, gpu = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
        look_again(board, opportunistic, gpus, config, node, gpu)


@kernel
def _fastest_share(
    board: Board, most_busy: float, opportunistic: Mask, gpus: Gpus, own: int, job: int
) -> tuple[int, int, int, float]:
    """Find the opportunistic share of a GPU in use with the shortest epoch: share, node, GPU, seconds; -1: none."""
    nodes, configs, per_node = board.nodes, board.facts.configs, sim.slots(board)
    best, node, gpu, least = -1, -1, -1, np.inf
    on = sim.residents(board)
    alone = board.facts.planned[int(board.jobs[job, at.APPLICATION])]
    for c in range(opportunistic.shape[0]):
        if not _may_be(board, opportunistic, own, job, c):
            continue
        for index in range(on.last.shape[0]):
            n, g = index // per_node, index % per_node
            if on.last[index] < 0 or nodes[n, at.NODE_TYPE] != configs[c, at.CONFIG_TYPE]:
                continue
            if gpus.busy[index] >= most_busy or not sim.has_room(board, c, n, g, False):
                continue
            speed = sim.speed_in_place(board, job, c, n, g, on)
            seconds = board.tau[job, c] / (alone[c] * speed) if speed > 0.0 else board.tau[job, c]
            if seconds < least:
                best, node, gpu, least = c, n, g, seconds
    return best, node, gpu, least


@dataclass(frozen=True, slots=True)
class Fill(PlannedPolicy):
    """Shares by priority: the class of a job is the rank of its tardiness weight among the jobs submitted so far.

    1. A running job keeps its GPU; where there is no guaranteed job, the opportunistic job of the highest class becomes
       the guaranteed job.
    2. Jobs that wait come by class, then by pressure. A job of the highest class takes idle whole GPUs or a guaranteed
       share of an idle GPU, as cheaply as its due date allows; else it becomes the guaranteed job of a GPU with only
       opportunistic jobs; else it replaces a guaranteed job of a lower class, which stays with an opportunistic share
       if one fits. It takes the GPU with least work of its own class or a higher one.
    3. Others are opportunistic jobs where an epoch takes least now, if that GPU is busy for less than `most_busy` of
       the time; on an idle GPU if they would be late there, or no share fits.

    Opportunistic shares have no priority above their job's class, except on an idle GPU for a job that may use no
    other share.

    Args:
        most_busy: M, > 0.
        classes: How many classes there are, from 1 to 10.

    Raises:
        InputError: One of them is out of its range.
    """

    most_busy: float = 0.95
    classes: int = 2
    name: str = "fill"
    job_order: str = "pressure"
    preemption: bool = True

    jobs_over: ClassVar[int] = 5_000  # completed jobs whose weights the classes need

    def __post_init__(self) -> None:
        checks.positive("most_busy", self.most_busy)
        if checks.whole("classes", self.classes) > MOST_PRIORITIES:
            raise InputError("classes", self.classes, f"at most {MOST_PRIORITIES}")

    def _plan(self, view: View) -> None:
        plan_fill(view.board, float(self.most_busy), int(self.classes))
