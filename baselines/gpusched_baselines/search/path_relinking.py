"""Path Relinking: the best of many constructions, and what lies between it and the others of the elite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.dispatching.idle_gpus import give_idle_gpus
from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.guidance import guidance
from gpusched_baselines.search.relinking import relink
from gpusched_baselines.search.solution import keep, restore
from gpusched_env.kernel import kernel
from gpusched_env.model import checks
from gpusched_env.simulator.rounds import measure

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import View


@dataclass(frozen=True, slots=True)
class PathRelinking:
    """Path Relinking (PR): looks between the best of Random Greedy's constructions for what is better still.

    The elite are the constructions with the least proxy cost. Better is then what has more guidance: Σ max execution
    time / (energy cost + tardiness cost) over the jobs that run. From the best of the elite a path leads towards each
    other: job after job takes the configuration that it has there. The best solution on the way is completed (waiting
    jobs that fit are placed, idle GPUs speed jobs up); if it is the best so far, the next paths begin there.

    The published method ranks the elite by the guidance too, picks each move anew and looks one move ahead.

    Args:
        constructions: Most constructions of Random Greedy per round, ≥ 0.
        elite: How many of them are kept, ≥ 1.
        name: Name, as tables show it.

    Raises:
        InputError: `constructions` is not a whole number ≥ 0, or `elite` not one ≥ 1.
    """

    constructions: int = 1000
    elite: int = 10
    name: str = "path-relinking"
    preemption: bool = True

    def __post_init__(self) -> None:
        checks.whole("constructions", self.constructions, 0)
        checks.whole("elite", self.elite)

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs anew."""
        found = Constructions.of(view, rng, self.constructions, size=self.elite)
        relink_all(
            view.jobs,
            view.nodes,
            view.configs,
            view.room,
            view.tau,
            view.planning_rate,
            view.node_rate,
            found.order,
            found.left,
            view.now_s,
            found.held,
            found.kept,
        )


@kernel
def relink_all(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    room: Ints,
    tau: Floats,
    rate: Floats,
    node_rate: Floats,
    order: Ints,
    left: Floats,
    now: float,
    held: Floats,
    kept: Ints,
) -> float:
    """Let the jobs hold the best of the elite, or what is better on the paths from it towards the others.

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS); changed.
        nodes: State of the nodes, (N, columns of `layout`); changed.
        configs: The configurations, (C, CONFIG_COLUMNS).
        room: What fits now by GPU type, (V, columns of `layout`); kept up to date.
        tau: Seconds per epoch, (J, C).
        rate: Planned cost rates [€/s], (C,).
        node_rate: r_v(u) [€/s], (V, G + 1).
        order: The jobs of the round by decreasing pressure, (A,).
        left: The epochs that they are taken to have left, (A,).
        now: Present time [s].
        held: What the jobs hold in each of the elite, (K, A, HELD).
        kept: The state of the nodes in each, (K, N, columns of `layout`).

    Returns:
        Its guidance [s/€].
    """
    best, value = 0, -np.inf
    for k in range(held.shape[0]):
        restore(jobs, nodes, order, held[k], kept[k])
        own = guidance(jobs, nodes, configs, tau, node_rate, order, left, now)
        if own > value:
            best, value = k, own
    best_held, best_nodes = held[best].copy(), kept[best].copy()
    way_held, way_nodes = np.empty_like(best_held), np.empty_like(best_nodes)
    for k in range(held.shape[0]):
        restore(jobs, nodes, order, best_held, best_nodes)
        measure(nodes, room)
        goal = held[k, :, 0].copy()
        found = relink(jobs, nodes, configs, room, tau, rate, node_rate, order, left, now, goal, way_held, way_nodes)
        if found == -np.inf:
            continue
        restore(jobs, nodes, order, way_held, way_nodes)
        measure(nodes, room)
        dispatch(jobs, nodes, configs, room, tau, rate, order, left, now)
        give_idle_gpus(jobs, nodes, configs, tau, order)
        found = guidance(jobs, nodes, configs, tau, node_rate, order, left, now)
        if found > value:
            value = found
            keep(jobs, nodes, order, best_held, best_nodes)
    restore(jobs, nodes, order, best_held, best_nodes)
    measure(nodes, room)
    return value
