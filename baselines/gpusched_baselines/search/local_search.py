"""Local Search: from the best round of Random Greedy, small changes as long as they make it cheaper by the proxy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.search import proxy_parts as its
from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.exchanges import best_exchange, exchange, sweep_moves
from gpusched_baselines.search.proxy_parts import proxy_with
from gpusched_baselines.search.solution import HELD, keep, refuse_tenancy, restore
from gpusched_env.kernel import kernel
from gpusched_env.model import checks
from gpusched_env.simulator.events import bill_rate
from gpusched_env.simulator.placement.room import measure

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.model import Instance
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Local Search (LS): improves the best round of Random Greedy until no small change makes its proxy cost less.

    Two jobs may exchange what they hold: two running ones, or one that waits and a running one of no higher pressure.
    And, with `moves`, a job may take another configuration, or the same one elsewhere; a waiting job one that fits. No
    running job gets slower unless it still meets its due date at worst, and none but in an exchange comes to wait.

    The published search has the exchanges alone, and allows any that the proxy likes.

    Args:
        constructions: Most constructions of Random Greedy per round, ≥ 0.
        iterations: Most iterations per round, ≥ 0. Each makes the best exchange and the best move of every job.
        moves: Whether jobs may move; False leaves the exchanges, as published.
        name: Name, as tables show it.
        fill: Whether Random Greedy is our own, with idle GPUs for jobs (`RandomGreedy.fill`).

    Raises:
        InputError: `constructions` or `iterations` is not a whole number ≥ 0.
    """

    constructions: int = 1000
    iterations: int = 100
    moves: bool = True
    name: str = "local-search"
    preemption: bool = True
    fill: bool = False

    def __post_init__(self) -> None:
        checks.whole("constructions", self.constructions, 0)
        checks.whole("iterations", self.iterations, 0)

    def check(self, instance: Instance) -> None:
        """Refuse quotas and cells: what jobs exchange is not counted, nor where cells lie.

        Raises:
            InputError: The instance has quotas or cells.
        """
        refuse_tenancy(instance, "quota", "cells")

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs anew."""
        found = Constructions.of(view, rng, self.constructions, fill=self.fill)
        found.restore_best(view)
        improve(view.board, found.order, found.left, self.iterations, self.moves)


@kernel
def improve(board: Board, order: Ints, left: Floats, iterations: int, moves: bool) -> int:
    """Change a round as long as that makes its proxy cost less, at most `iterations` times; return how often it did.

    Args:
        order: The jobs of the round by decreasing pressure, (A,).
        left: The epochs that they are taken to have left, (A,).
        iterations: Most iterations: each makes the best exchange and, with `moves`, the best move of every job.
        moves: Whether jobs may move.
    """
    held, kept = np.empty((order.shape[0], HELD)), np.empty_like(board.nodes)
    cost = proxy_with(board, order, left)
    for done in range(iterations):
        keep(board, order, held, kept)
        seen = its.see(board, order, left)
        i, k, _ = best_exchange(board, order, left, seen, bill_rate(board), cost)
        if i >= 0:
            exchange(board, order[i], order[k])
        if moves:
            sweep_moves(board, order, left)
        after = proxy_with(board, order, left)
        if after >= cost:  # nothing was found, or what was is no more than rounding
            restore(board, order, held, kept)
            measure(board)
            return done
        cost = after
    return iterations
