"""AntMan: opportunistic jobs fill the GPU time that guaranteed jobs leave."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpusched_baselines.shared_gpus.gpus import (
    Gpus,
    cheapest_guaranteed,
    close_emptiest,
    least_busy,
    look_at_gpus,
    may_own,
    opportunistic_shares,
    place_guaranteed,
    promote,
    put_share,
)
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Mask, PlannedPolicy, View, at, kernel, lean_kernel


@kernel
def plan_antman(board: Board, most_busy: float, auto_after_s: float, promotes: bool) -> None:
    """Plan the round on an empty cluster, and write the plan of every job to `memory`; nothing else changes."""
    jobs, active = board.jobs, board.active[: board.count[at.ACTIVE]]
    opportunistic = opportunistic_shares(board)
    held, kept = sim.begin_plan(board, True)
    for guaranteed in (True, False):  # running jobs stay
        for job in active:
            if jobs[job, at.OLD_CONFIG] >= 0.0 and _guaranteed(board, job) == guaranteed:
                sim.place(board, job, int(jobs[job, at.OLD_CONFIG]))
    gpus, closed = look_at_gpus(board, opportunistic), np.zeros(board.nodes.shape[0], dtype=np.int8)
    waits = _place_guaranteed(board, opportunistic, gpus, closed)
    _place_opportunistic(board, most_busy, auto_after_s, opportunistic, gpus, closed)
    if promotes and not waits:
        promote(board, opportunistic, gpus, closed)
    sim.write_plan(board)
    sim.end_plan(board, held, kept)


@lean_kernel
def _guaranteed(board: Board, job: int) -> bool:
    return board.jobs[job, at.OPPORTUNISTIC] == 0.0


@kernel
def _place_guaranteed(board: Board, opportunistic: Mask, gpus: Gpus, closed: Mask) -> bool:
    """Place the guaranteed jobs that wait, by submission; keep nodes for the first gang that does not fit.

    Returns:
        Whether a guaranteed job waits.
    """
    jobs, waits, full = board.jobs, False, np.zeros(board.tau.shape[1], dtype=np.int8)
    for job in board.active[: board.count[at.ACTIVE]]:
        if jobs[job, at.CONFIG] >= 0.0 or jobs[job, at.OLD_CONFIG] >= 0.0 or not _guaranteed(board, job):
            continue
        if not may_own(board, opportunistic, job):
            continue
        if place_guaranteed(board, opportunistic, gpus, closed, full, job, np.inf):
            continue
        wanted = cheapest_guaranteed(board, opportunistic, np.zeros_like(full), job)
        if (
            not waits
            and wanted >= 0
            and (board.facts.configs[wanted, at.CONFIG_UNITS] == 0 or sim.of_several(board, wanted))
        ):
            close_emptiest(board, gpus, wanted, closed)
        waits = True
    return waits


@kernel
def _place_opportunistic(
    board: Board, most_busy: float, auto_after_s: float, opportunistic: Mask, gpus: Gpus, closed: Mask
) -> None:
    """Place the opportunistic jobs that wait, and guaranteed ones that waited too long or have no other share, in turn.

    Jobs that may use no opportunistic share take GPUs that guaranteed jobs leave, but no node that is kept for them.
    """
    jobs, now = board.jobs, board.clock[at.NOW]
    full = np.zeros(board.tau.shape[1], dtype=np.int8)
    for job in board.active[: board.count[at.ACTIVE]]:
        if jobs[job, at.CONFIG] >= 0.0:
            continue
        if _guaranteed(board, job) and may_own(board, opportunistic, job):
            until = jobs[job, at.SUBMISSION] + auto_after_s
            if now < until:
                board.memory[job, sim.TIMER] = until
                continue
        config, node, gpu = _least_busy_share(board, most_busy, opportunistic, gpus, full, job)
        if config >= 0:
            put_share(board, opportunistic, gpus, job, config, node, gpu)
        elif not _guaranteed(board, job) and not _may_be_opportunistic(board, opportunistic, job):
            place_guaranteed(board, opportunistic, gpus, closed, np.zeros_like(full), job, np.inf)


@kernel
def _least_busy_share(
    board: Board, most_busy: float, opportunistic: Mask, gpus: Gpus, full: Mask, job: int
) -> tuple[int, int, int]:
    """Find the opportunistic share of the least busy GPU, of equals the fastest: share, node and GPU; -1: none fits.

    Shares that fit on no GPU are marked in `full`, (C,).
    """
    nowhere = np.zeros(
        board.nodes.shape[0], dtype=np.int8
    )  # opportunistic jobs may go to nodes that are kept for others
    best, node, gpu, least = -1, -1, -1, (np.inf, np.inf)
    for c in range(opportunistic.shape[0]):
        if opportunistic[c] == 0 or full[c] != 0 or board.tau[job, c] == np.inf or not sim.within_quota(board, job, c):
            continue
        n, g, busy = least_busy(board, gpus, c, False, nowhere, most_busy)
        if n < 0:
            full[c] = 1
            continue
        value = (busy, board.tau[job, c])
        if value < least:
            best, node, gpu, least = c, n, g, value
    return best, node, gpu


@kernel
def _may_be_opportunistic(board: Board, opportunistic: Mask, job: int) -> bool:
    for c in range(opportunistic.shape[0]):
        if opportunistic[c] != 0 and board.tau[job, c] < np.inf:
            return True
    return False


@dataclass(frozen=True, slots=True)
class AntMan(PlannedPolicy):
    """AntMan's rules for a cluster whose jobs are guaranteed or opportunistic (`Job.opportunistic`).

    1. A running job keeps its place; only opportunistic jobs are preempted, by gangs that need their GPUs.
    2. Guaranteed jobs that wait, by submission, take the cheapest of whole GPUs and guaranteed shares that meets the
       due date; a job that may be the guaranteed job of GPUs does not take them whole. A GPU with only opportunistic
       jobs counts as free for a guaranteed job; idle ones come first. For the first job on whole or several GPUs that
       does not fit, the nodes with most GPUs free of guaranteed jobs are kept; the jobs after it go to other nodes.
    3. Opportunistic jobs that wait, by submission, take an opportunistic share of the GPU that is least busy, if that
       is less than `most_busy` of the time: idle GPUs first, kept ones too. They leave the share of a guaranteed job
       free where both fit on one GPU. Guaranteed jobs that may use only opportunistic shares do the same.
    4. If no guaranteed job waits, the slowest opportunistic job moves to an idle GPU with a guaranteed share, if its
       expected gain of time is more than a restart takes, and so on.

    Where shares have one priority they all count as opportunistic; where there are none, opportunistic jobs come last.

    Args:
        most_busy: M, > 0.
        auto_after_s: How long a guaranteed job waits before it may run with an opportunistic share [s], ≥ 0; inf:
            never.
        promotes: Whether rule 4 holds.

    Raises:
        InputError: One of them is out of its range.
    """

    most_busy: float = 0.8
    auto_after_s: float = math.inf
    promotes: bool = True
    name: str = "antman"
    job_order: str = "submission"
    preemption: bool = True

    def __post_init__(self) -> None:
        checks.positive("most_busy", self.most_busy)
        if not self.auto_after_s >= 0.0:
            raise InputError("auto_after_s", self.auto_after_s, "a number >= 0, or inf")
        if not isinstance(self.promotes, bool):
            raise InputError("promotes", self.promotes, "True or False")

    def _plan(self, view: View) -> None:
        plan_antman(view.board, float(self.most_busy), float(self.auto_after_s), self.promotes)
