"""Randomised constructions of a round: Greedy with chance in the order, the configurations and the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.dispatching.idle_gpus import give_idle_gpus
from gpusched_baselines.planning.cheapest import any_room, preference
from gpusched_baselines.planning.epochs_left import Epochs, epochs_left, expected_slack
from gpusched_baselines.search.proxy import proxy_with
from gpusched_baselines.search.solution import HELD, offer, restore
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement.best_fit import best_fit, fit_key
from gpusched_env.simulator.placement.node_index import find_node
from gpusched_env.simulator.placement.placement import fits, place, take
from gpusched_env.simulator.placement.room import clear, measure

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board

SWAP_BIAS = 0.05  # neighbours swap with probability 0.5 + this towards the larger tardiness weight, 0.5 - this away
NEXT_CONFIGURATION = 0.05  # probability of passing over a configuration for the next best one
NEXT_NODE = 0.2  # probability of passing over a node for the next best one


@dataclass(frozen=True, slots=True, eq=False)
class Constructions:
    """The best constructions of a round, different ones, by the proxy cost.

    Attributes:
        order: The jobs of the round by decreasing pressure, (A,).
        left: The epochs that they are taken to have left, (A,).
        costs: Proxy costs [€], (K,), in no order.
        held: What the jobs hold in each, (K, A, HELD): configuration, node, shared GPU.
        kept: The state of the nodes in each, (K, N, columns of `layout`).
    """

    order: Ints
    left: Floats
    costs: Floats
    held: Floats
    kept: Ints

    @classmethod
    def of(
        cls, view: View, rng: Generator, constructions: int, *, size: int = 1, epochs: Epochs = "worst-case"
    ) -> Constructions:
        """Construct the round by Greedy, then at most `constructions` times at random, and keep the `size` best."""
        order = ask_order(view, "pressure" if epochs == "worst-case" else expected_slack, waiting_only=False)
        left = epochs_left(view, order, epochs)
        costs = np.full(size, np.inf)
        held = np.empty((size, len(order), HELD))
        kept = np.empty((size, *view.nodes.shape), dtype=np.int64)
        most = len(view.nodes) * len(order) * int(view.nodes[:, at.NODE_GPUS].max())
        construct(view.board, order, left, min(constructions, most), rng, costs, held, kept)
        found = np.isfinite(costs)
        return cls(order, left, costs[found], held[found], kept[found])

    def restore(self, view: View, index: int) -> None:
        """Let the jobs hold what they hold in one of the constructions."""
        restore(view.board, self.order, self.held[index], self.kept[index])
        measure(view.board)

    def restore_best(self, view: View) -> None:
        """Let the jobs hold what they hold in the best construction."""
        self.restore(view, int(np.argmin(self.costs)))


@kernel
def construct(
    board: Board, order: Ints, left: Floats, constructions: int, rng: Generator, costs: Floats, held: Floats, kept: Ints
) -> None:
    """Construct a round by Greedy and `constructions` times at random; `offer` each to the elite."""
    configs = board.facts.configs
    dispatch(board, order, left)
    give_idle_gpus(board, order)
    offer(board, order, proxy_with(board, order, left), costs, held, kept)
    ranking = np.empty((order.shape[0], configs.shape[0]), dtype=np.int64)
    allowed = np.empty(order.shape[0], dtype=np.int64)
    for i in range(order.shape[0]):
        allowed[i] = preference(board, order[i], left[i], ranking[i])
    turn = np.empty(order.shape[0], dtype=np.int64)
    for _ in range(constructions):
        clear(board, order)
        _shuffle(board, order, turn, rng)
        for k in range(turn.shape[0]):
            if not any_room(board):
                break
            i = turn[k]
            _place_at_random(board, order[i], ranking[i], int(allowed[i]), rng)
        give_idle_gpus(board, order)
        offer(board, order, proxy_with(board, order, left), costs, held, kept)


@kernel
def _shuffle(board: Board, order: Ints, turn: Ints, rng: Generator) -> None:
    jobs = board.jobs
    for i in range(order.shape[0]):
        turn[i] = i
    for i in range(order.shape[0] - 1):
        heavier = jobs[order[turn[i + 1]], at.WEIGHT] > jobs[order[turn[i]], at.WEIGHT]
        if rng.random() < 0.5 + (SWAP_BIAS if heavier else -SWAP_BIAS):
            turn[i], turn[i + 1] = turn[i + 1], turn[i]


@kernel
def _place_at_random(board: Board, job: int, ranking: Ints, allowed: int, rng: Generator) -> None:
    jobs, configs = board.jobs, board.facts.configs
    config = -1
    for i in range(allowed):
        c = ranking[i]
        if fits(board, c):
            config = c
            if rng.random() >= NEXT_CONFIGURATION:
                break
    if config < 0:
        return
    if configs[config, at.CONFIG_UNITS] > 0 or configs[config, at.CONFIG_NODES] > 1:
        place(board, job, config)
        return
    gpu_type, gpus = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_GPUS]
    home = int(jobs[job, at.HOME])
    node = find_node(board, gpu_type, gpus, home)
    while rng.random() < NEXT_NODE:
        following = best_fit(board, gpu_type, gpus, home, fit_key(board, node, gpu_type, gpus, home))
        if following < 0:
            break
        node = following
    take(board, job, config, node, -1)
