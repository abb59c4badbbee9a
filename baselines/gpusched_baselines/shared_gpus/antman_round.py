"""One round of AntMan: guaranteed jobs as if they were alone, opportunistic ones on what these leave of the GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.shared_gpus.gpus import guest_shares, least_busy, look_at_gpus
from gpusched_baselines.shared_gpus.hosting import cheapest_host, may_own, place_host, put_share
from gpusched_baselines.shared_gpus.planned_round import WAKE, put_aside, write_plan
from gpusched_baselines.shared_gpus.promotion import promote
from gpusched_baselines.shared_gpus.whole import roomiest
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import place
from gpusched_env.simulator.placement.quotas import within_quota
from gpusched_env.simulator.placement.shared_gpus import slots

if TYPE_CHECKING:
    from gpusched_baselines.shared_gpus.gpus import Gpus
    from gpusched_env.arrays import Mask
    from gpusched_env.simulator.run import Board


class AntManRule(NamedTuple):
    """The numbers of AntMan.

    Attributes:
        most_busy: M: a GPU on which somebody is takes a guest only while it is busy for less of the time.
        auto_after_s: How long a guaranteed job waits before it runs as a guest too [s]; inf: never.
        promotes: Whether guests move to idle GPUs as hosts when no guaranteed job waits.
    """

    most_busy: float
    auto_after_s: float
    promotes: bool


@kernel
def plan_antman(board: Board, rule: AntManRule) -> None:
    """Plan the round on an empty cluster, and write what every job shall get to `memory`; nothing else changes."""
    jobs, active = board.jobs, board.active[: board.count[at.ACTIVE]]
    guests = guest_shares(board)
    held, kept = put_aside(board, True)
    for guaranteed in (True, False):  # who runs stays
        for job in active:
            if jobs[job, at.OLD_CONFIG] >= 0.0 and _guaranteed(board, job) == guaranteed:
                place(board, job, int(jobs[job, at.OLD_CONFIG]))
    gpus, closed = look_at_gpus(board, guests), np.zeros(board.nodes.shape[0], dtype=np.int8)
    waits = _place_hosts(board, guests, gpus, closed)
    _place_guests(board, rule, guests, gpus, closed)
    if rule.promotes and not waits:
        promote(board, guests, gpus, closed)
    write_plan(board, held, kept)


@lean_kernel
def _guaranteed(board: Board, job: int) -> bool:
    return board.jobs[job, at.OPPORTUNISTIC] == 0.0


@kernel
def _place_hosts(board: Board, guests: Mask, gpus: Gpus, closed: Mask) -> bool:
    """Place the guaranteed jobs that wait, by submission; keep nodes for the first gang that finds no room.

    Returns:
        Whether a guaranteed job waits.
    """
    jobs, waits, full = board.jobs, False, np.zeros(board.tau.shape[1], dtype=np.int8)
    for job in board.active[: board.count[at.ACTIVE]]:
        if jobs[job, at.CONFIG] >= 0.0 or jobs[job, at.OLD_CONFIG] >= 0.0 or not _guaranteed(board, job):
            continue
        if not may_own(board, guests, job):
            continue
        if place_host(board, guests, gpus, closed, full, job):
            continue
        wanted = cheapest_host(board, guests, np.zeros_like(full), job)
        if not waits and wanted >= 0 and board.facts.configs[wanted, at.CONFIG_UNITS] == 0:
            roomiest(board, gpus, wanted, closed)
        waits = True
    return waits


@kernel
def _place_guests(board: Board, rule: AntManRule, guests: Mask, gpus: Gpus, closed: Mask) -> None:
    """Place the opportunistic jobs that wait, and guaranteed ones that waited too long or can be no hosts, in turn.

    Jobs that may use no guest's share take what guaranteed ones leave, but none of the nodes kept for them.
    """
    jobs, now = board.jobs, board.clock[at.NOW]
    full = np.zeros(board.tau.shape[1], dtype=np.int8)
    for job in board.active[: board.count[at.ACTIVE]]:
        if jobs[job, at.CONFIG] >= 0.0:
            continue
        if _guaranteed(board, job) and may_own(board, guests, job):
            until = jobs[job, at.SUBMISSION] + rule.auto_after_s
            if now < until:
                board.memory[job, WAKE] = until
                continue
        config, node, gpu = _gap(board, rule.most_busy, guests, gpus, full, job)
        if config >= 0:
            put_share(board, guests, gpus, job, config, node, gpu)
        elif not _guaranteed(board, job) and not _may_be_guest(board, guests, job):
            place_host(board, guests, gpus, closed, np.zeros_like(full), job)


@kernel
def _gap(board: Board, most_busy: float, guests: Mask, gpus: Gpus, full: Mask, job: int) -> tuple[int, int, int]:
    """Find the guest's share of the least busy GPU, of equals the fastest: share, node and GPU; -1: none has room.

    Shares that are found to have no room are marked in `full`, (C,).
    """
    nowhere = np.zeros(board.nodes.shape[0], dtype=np.int8)  # guests may go to nodes that are kept for others
    best, node, gpu, least = -1, -1, -1, (np.inf, np.inf)
    for c in range(guests.shape[0]):
        if guests[c] == 0 or full[c] != 0 or board.tau[job, c] == np.inf or not within_quota(board, job, c):
            continue
        n, g = least_busy(board, gpus, c, False, nowhere, most_busy)
        if n < 0:
            full[c] = 1
            continue
        value = (gpus.busy[n * slots(board) + g], board.tau[job, c])
        if value < least:
            best, node, gpu, least = c, n, g, value
    return best, node, gpu


@kernel
def _may_be_guest(board: Board, guests: Mask, job: int) -> bool:
    for c in range(guests.shape[0]):
        if guests[c] != 0 and board.tau[job, c] < np.inf:
            return True
    return False
