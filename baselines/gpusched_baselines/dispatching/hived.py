"""HiveD: each tenant's virtual cluster by a dispatch rule, and opportunistic jobs on what nobody uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.dispatch import DispatchPolicy, fifo
from gpusched_baselines.planning.cheapest import RECKONED, any_room, cheapest_with, left_of_all
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.cells import lying as blocks
from gpusched_env.simulator.cells.lying import first_host, is_lent, let_empty_cells_go, survey
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement.placement import place, prefer_place

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class HiveD:
    """A dispatch rule within every virtual cluster, and then for opportunistic jobs (Zhao et al., OSDI 2020).

    Guaranteed jobs go first, in the rule's order, on cells of their tenant; where no cell is free they wait. Cells are
    bound to hosts by buddy allocation, and drive out opportunistic jobs where they must. Then the cells in which
    nothing runs are let go, and opportunistic jobs, those that were just driven out too, go to the hosts of which least
    is in cells that are used, among those to the ones that opportunistic jobs use most. On an instance without cells it
    is the rule alone.

    Args:
        inner: The rule; its `preemption` is ours too.
        name: Name, as tables show it.
    """

    inner: DispatchPolicy = field(default_factory=fifo)
    name: str = "hived"

    @property
    def preemption(self) -> bool:
        """Say whether a round begins from an empty cluster."""
        return self.inner.preemption

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place the guaranteed jobs, then the opportunistic ones."""
        for lent in (False, True):
            if any_room(view.board) and (len(view.hosts) or not lent):
                order = ask_order(view, self.inner.job_order, waiting_only=not self.preemption)
                _decide(view.board, order, RECKONED[self.inner.epochs], lent)


@kernel
def _decide(board: Board, order: Ints, reckoned: int, lent: bool) -> None:
    """Place the waiting jobs of one class."""
    left = left_of_all(board, order, reckoned)
    if lent:
        let_empty_cells_go(board)
        survey(board)
    for i in range(order.shape[0]):
        if not any_room(board):
            return
        job = order[i]
        if board.jobs[job, at.CONFIG] >= 0 or _is_opportunistic(board, job) != lent:
            continue
        config = cheapest_with(board, board.planning_rate, job, left[i])
        if config < 0:
            continue
        home = int(board.jobs[job, at.HOME])
        if lent and (home < 0 or board.nodes[home, at.FREE] < board.facts.configs[config, at.CONFIG_GPUS]):
            prefer_place(board, job, _away(board, config), -1)
        place(board, job, config)


@kernel
def _is_opportunistic(board: Board, job: int) -> bool:
    """Say whether the configurations of a job are those of opportunistic ones."""
    for c in range(board.tau.shape[1]):
        if board.tau[job, c] < np.inf:
            return is_lent(board, c)
    return False


@kernel
def _away(board: Board, config: int) -> int:
    """Find the host with room that has least in bound cells, then most lent already, then by index; -1 if none has."""
    nodes, configs, first = board.nodes, board.facts.configs, first_host(board)
    best, best_key = -1, (0, 0)
    for h in range(board.hosts.shape[0]):
        n = first + h
        if nodes[n, at.NODE_TYPE] != configs[config, at.CONFIG_TYPE]:
            continue
        lent = nodes[n, at.NODE_GPUS] - nodes[n, at.FREE] - _bits(board.hosts[h, blocks.TAKEN])
        key = (_bits(board.hosts[h, blocks.TAKEN]), -lent)
        if nodes[n, at.FREE] >= configs[config, at.CONFIG_GPUS] and (best < 0 or key < best_key):
            best, best_key = n, key
    return best


@kernel
def _bits(mask: int) -> int:
    """Count the GPUs of a mask."""
    count = 0
    while mask > 0:
        count += mask & 1
        mask >>= 1
    return count
