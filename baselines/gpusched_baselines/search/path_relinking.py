"""Path Relinking: the best of many constructions, and what lies between it and the others of the elite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.dispatching.greedy import finish_round
from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.guidance import guidance
from gpusched_baselines.search.relinking import relink
from gpusched_baselines.search.solution import keep, refuse_tenancy, restore
from gpusched_env.kernel import kernel
from gpusched_env.model import checks
from gpusched_env.simulator.placement.room import measure

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.model import Instance
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class PathRelinking:
    """Path Relinking (PR): looks between the best of Random Greedy's constructions for what is better still.

    The elite are the constructions with the least proxy cost. Better is then what has more guidance: Σ max execution
    time / (energy cost + tardiness cost) over the jobs that run. From the best of the elite a path leads towards each
    other: job after job takes the configuration that it has there. The best solution on the way is completed (waiting
    jobs that fit are placed, and the round is finished as a construction is); if it is the best so far, the next paths
    begin there.

    The published method ranks the elite by the guidance too, picks each move anew and looks one move ahead.

    Args:
        constructions: Most constructions of Random Greedy per round, ≥ 0.
        elite: How many of them are kept, ≥ 1.
        name: Name, as tables show it.
        fill: Whether Random Greedy is our own, with idle GPUs for jobs (`RandomGreedy.fill`).

    Raises:
        InputError: `constructions` is not a whole number ≥ 0, or `elite` not one ≥ 1.
    """

    constructions: int = 1000
    elite: int = 10
    name: str = "path-relinking"
    preemption: bool = True
    fill: bool = False

    def __post_init__(self) -> None:
        checks.whole("constructions", self.constructions, 0)
        checks.whole("elite", self.elite)

    def check(self, instance: Instance) -> None:
        """Refuse quotas and cells: what jobs exchange is not counted, nor where cells lie.

        Raises:
            InputError: The instance has quotas or cells.
        """
        refuse_tenancy(instance, "quota", "cells")

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs anew."""
        found = Constructions.of(view, rng, self.constructions, size=self.elite, fill=self.fill)
        relink_all(view.board, found.order, found.left, found.held, found.kept, self.fill)


@kernel
def relink_all(board: Board, order: Ints, left: Floats, held: Floats, kept: Ints, fill: bool) -> float:
    """Let the jobs hold the best of the elite, or what is better on the paths from it towards the others.

    Args:
        order: The jobs of the round by decreasing pressure, (A,).
        left: The epochs that they are taken to have left, (A,).
        held: What the jobs hold in each of the elite, (K, A, HELD).
        kept: The state of the nodes in each, (K, N, columns of `layout`).
        fill: Whether idle GPUs go to jobs when a path ends.

    Returns:
        Its guidance [s/€].
    """
    best, value = 0, -np.inf
    for k in range(held.shape[0]):
        restore(board, order, held[k], kept[k])
        own = guidance(board, order, left)
        if own > value:
            best, value = k, own
    best_held, best_nodes = held[best].copy(), kept[best].copy()
    way_held, way_nodes = np.empty_like(best_held), np.empty_like(best_nodes)
    for k in range(held.shape[0]):
        restore(board, order, best_held, best_nodes)
        measure(board)
        goal = held[k, :, 0].copy()
        found = relink(board, order, left, goal, way_held, way_nodes)
        if found == -np.inf:
            continue
        restore(board, order, way_held, way_nodes)
        measure(board)
        dispatch(board, order, left)
        finish_round(board, order, left, fill)
        found = guidance(board, order, left)
        if found > value:
            value = found
            keep(board, order, best_held, best_nodes)
    restore(board, order, best_held, best_nodes)
    measure(board)
    return value
