"""Random Greedy: many randomised constructions of a round, of which the best is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.cheapest import any_gap, preference
from gpusched_baselines.dispatch import dispatch
from gpusched_baselines.idle_gpus import give_idle_gpus
from gpusched_baselines.proxy import proxy_cost
from gpusched_env.model import checks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernel import kernel
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement import best_fit, fit_key, largest_gap, take

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.simulator import View
    from gpusched_env.simulator.arrays import Floats, Ints

SWAP_BIAS = 0.05  # neighbours swap with probability 0.5 + this towards the larger tardiness weight, 0.5 - this away
NEXT_CONFIGURATION = 0.05  # probability of passing over a configuration for the next best one
NEXT_NODE = 0.2  # probability of passing over a node for the next best one


@dataclass(frozen=True, slots=True)
class RandomGreedy:
    """Random Greedy (RG): Greedy, then randomised constructions; keeps the best by the proxy cost of the round.

    A construction swaps neighbours in the order of pressure, and takes configurations and nodes by biased random rank:
    the best, or with a small probability the next best, and so on.

    Args:
        constructions: Most constructions per round, ≥ 0; never more than nodes · jobs · most GPUs of a node.
        name: Name, as tables show it.

    Raises:
        InputError: `constructions` is not a whole number ≥ 0.
    """

    constructions: int = 1000
    name: str = "random-greedy"
    preemption: bool = True

    def __post_init__(self) -> None:
        checks.whole("constructions", self.constructions, 0)

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs anew."""
        order = ask_order(view, "pressure", waiting_only=False)
        most = len(view.nodes) * len(order) * int(view.nodes[:, at.NODE_GPUS].max())
        _decide(
            view.jobs,
            view.nodes,
            view.configs,
            view.gaps,
            view.tau,
            view.planning_rate,
            view.node_rate,
            order,
            view.now_s,
            min(self.constructions, most),
            rng,
        )


@kernel
def _decide(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    gaps: Ints,
    tau: Floats,
    rate: Floats,
    node_rate: Floats,
    order: Ints,
    now: float,
    constructions: int,
    rng: Generator,
) -> None:
    dispatch(jobs, nodes, configs, gaps, tau, rate, order, now)
    give_idle_gpus(jobs, nodes, configs, tau, order)
    best = np.empty((order.shape[0], 2))
    keep(jobs, order, best)
    best_cost = proxy_cost(jobs, nodes, tau, node_rate, order, now)
    ranking = np.empty((order.shape[0], configs.shape[0]), dtype=np.int64)
    allowed = np.empty(order.shape[0], dtype=np.int64)
    for i in range(order.shape[0]):
        allowed[i] = preference(jobs, tau, rate, now, order[i], ranking[i])
    turn = np.empty(order.shape[0], dtype=np.int64)
    for _ in range(constructions):
        clear(jobs, nodes, gaps, order)
        _shuffle(jobs, order, turn, rng)
        for k in range(turn.shape[0]):
            if not any_gap(gaps):
                break
            i = turn[k]
            _place_at_random(jobs, nodes, configs, gaps, order[i], ranking[i], int(allowed[i]), rng)
        give_idle_gpus(jobs, nodes, configs, tau, order)
        cost = proxy_cost(jobs, nodes, tau, node_rate, order, now)
        if cost < best_cost:
            best_cost = cost
            keep(jobs, order, best)
    clear(jobs, nodes, gaps, order)
    for i in range(order.shape[0]):
        if best[i, 0] >= 0:
            take(jobs, nodes, configs, gaps, order[i], int(best[i, 0]), int(best[i, 1]))


@kernel
def keep(jobs: Floats, order: Ints, solution: Floats) -> None:
    """Write what every job of the round holds to `solution`: configuration and node, (A, 2)."""
    for i in range(order.shape[0]):
        solution[i, 0] = jobs[order[i], at.CONFIG]
        solution[i, 1] = jobs[order[i], at.NODE]


@kernel
def clear(jobs: Floats, nodes: Ints, gaps: Ints, order: Ints) -> None:
    """Empty the cluster: no job of the round holds anything."""
    for i in range(order.shape[0]):
        jobs[order[i], at.CONFIG] = -1.0
        jobs[order[i], at.NODE] = -1.0
    for n in range(nodes.shape[0]):
        nodes[n, at.FREE] = nodes[n, at.NODE_GPUS]
    for v in range(gaps.shape[0]):
        gaps[v] = largest_gap(nodes, v)


@kernel
def _shuffle(jobs: Floats, order: Ints, turn: Ints, rng: Generator) -> None:
    for i in range(order.shape[0]):
        turn[i] = i
    for i in range(order.shape[0] - 1):
        heavier = jobs[order[turn[i + 1]], at.WEIGHT] > jobs[order[turn[i]], at.WEIGHT]
        if rng.random() < 0.5 + (SWAP_BIAS if heavier else -SWAP_BIAS):
            turn[i], turn[i + 1] = turn[i + 1], turn[i]


@kernel
def _place_at_random(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    gaps: Ints,
    job: int,
    ranking: Ints,
    allowed: int,
    rng: Generator,
) -> None:
    config = -1
    for i in range(allowed):
        c = ranking[i]
        if configs[c, at.CONFIG_GPUS] <= gaps[configs[c, at.CONFIG_TYPE]]:
            config = c
            if rng.random() >= NEXT_CONFIGURATION:
                break
    if config < 0:
        return
    gpu_type, gpus = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_GPUS]
    home = int(jobs[job, at.OLD_NODE])
    node = best_fit(nodes, gpu_type, gpus, home, -1)
    while rng.random() < NEXT_NODE:
        following = best_fit(nodes, gpu_type, gpus, home, fit_key(nodes, node, gpu_type, gpus, home))
        if following < 0:
            break
        node = following
    take(jobs, nodes, configs, gaps, job, config, node)
