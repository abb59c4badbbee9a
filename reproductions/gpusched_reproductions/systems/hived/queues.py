"""First come, first served with backfilling, under quotas: where jobs are put, and how often they find no room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator.kernels import ask_order, at, fits, kernel, place, prefer_place
from gpusched_env.simulator.placement.release import within_quota

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board

REFUSED = 0  # column of memory: in how many rounds a job was the first of its tenant and size that found no room


@dataclass(frozen=True, slots=True)
class Backfill:
    """Waiting jobs by submission, each on the one configuration that it may use, wherever that fits now.

    Args:
        name: Name, as tables show it.
        spreads: Whether a job goes to the node with most free GPUs; else to the one with fewest that has room.
    """

    name: str
    spreads: bool
    preemption: bool = False

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place the waiting jobs, and count those that their quota would have allowed."""
        backfill(view.board, ask_order(view, "submission", waiting_only=True), self.spreads)


@kernel
def backfill(board: Board, order: Ints, spreads: bool) -> None:
    """Place the jobs of `order`, (A,), in turn."""
    refused = np.zeros((board.quota.shape[0], board.tau.shape[1]), dtype=np.bool_)
    for job in order:
        config = _only(board, job)
        if not within_quota(board, job, config):
            continue
        if not fits(board, config):
            tenant = int(board.jobs[job, at.TENANT])
            if board.quota.shape[0] > 0 and not refused[tenant, config]:
                refused[tenant, config] = True
                board.memory[job, REFUSED] += 1.0
            continue
        if spreads:
            prefer_place(board, job, _emptiest(board, config), -1)
        place(board, job, config)


def refusals(view: View) -> int:
    """Count what was refused in a run with `Backfill`: each tenant and size once in a round."""
    return int(view.memory[:, REFUSED].sum())


@kernel
def _only(board: Board, job: int) -> int:
    """Give the first configuration that a job may use."""
    config = 0
    while board.tau[job, config] > 1e300:
        config += 1
    return config


@kernel
def _emptiest(board: Board, config: int) -> int:
    """Give the node of a configuration's type with most free GPUs, the first of several."""
    nodes, gpu_type = board.nodes, board.facts.configs[config, at.CONFIG_TYPE]
    best, most = -1, -1
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] == gpu_type and nodes[n, at.FREE] > most:
            best, most = n, nodes[n, at.FREE]
    return best
