"""Random Greedy: constructions of a round with random order, configurations and nodes.

`order`, (A,), are the jobs of the round by decreasing pressure, and `left`, (A,), their estimated epochs left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.dispatching.dispatch import dispatch, finish_round
from gpusched_baselines.planning.cheapest import (
    Epochs,
    any_capacity,
    by_pressure,
    check_epochs,
    epochs_left,
    preference,
)
from gpusched_baselines.search.exchanges import offer
from gpusched_baselines.search.proxy_parts import proxy_with
from gpusched_env.errors import InputError
from gpusched_env.mechanisms.tenants.model import Tenants
from gpusched_env.model import Instance, Tenancy, checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, View, at, kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.random import Generator


BEST = 0.05  # part of the choices from which the published method picks
CHOICES_FOR_TWO = 30  # with fewer choices that part is a single one
NEXT_CONFIGURATION = 0.05  # ours: probability of passing over a configuration for the next best one
NEXT_NODE = 0.2  # ours: probability of passing over a node for the next best one


@lean_kernel
def shortlist(choices: int) -> int:
    """Return from how many of the best choices the published method picks: 5 % rounded half up, at least one."""
    return max(1, int(BEST * choices + 0.5))


@kernel
def pick_config(board: Board, job: int, ranking: Ints, allowed: int, rng: Generator) -> int:
    """Pick one of the best configurations that fit now, all with equal probability; -1 if none fits.

    Args:
        ranking: The configurations, best first, (C,).
    """
    rank = 0
    if allowed >= CHOICES_FOR_TWO:
        choices = 0
        for i in range(allowed):
            choices += 1 if sim.can_place(board, job, ranking[i]) else 0
        short = shortlist(choices)
        rank = int(rng.random() * short) if short > 1 else 0
    for i in range(allowed):
        if sim.can_place(board, job, ranking[i]):
            if rank == 0:
                return ranking[i]
            rank -= 1
    return -1


@kernel
def pick_node(board: Board, gpu_type: int, gpus: int, preferred: int, rng: Generator) -> int:
    """Pick one of the best nodes by `fit_key` that have `gpus` free GPUs; there must be one."""
    if board.nodes.shape[0] < CHOICES_FOR_TWO:
        return sim.find_node(board, gpu_type, gpus, preferred)
    short = shortlist(sim.count_fitting(board, gpu_type, gpus))
    rank = int(rng.random() * short) if short > 1 else 0
    return sim.find_ranked(board, gpu_type, gpus, preferred, rank)


@kernel
def pass_to_config(board: Board, job: int, ranking: Ints, allowed: int, rng: Generator) -> int:
    """Take the best configuration that fits now, or with a small probability the next best, and so on; -1 if none."""
    config = -1
    for i in range(allowed):
        if sim.can_place(board, job, ranking[i]):
            config = ranking[i]
            if rng.random() >= NEXT_CONFIGURATION:
                break
    return config


@kernel
def pass_to_node(board: Board, gpu_type: int, gpus: int, preferred: int, rng: Generator) -> int:
    """Take the best node by `fit_key`, or with a small probability the next best, and so on; there must be one."""
    node = sim.find_node(board, gpu_type, gpus, preferred)
    while rng.random() < NEXT_NODE:
        following = sim.best_fit(board, gpu_type, gpus, preferred, sim.fit_key(board, node, gpu_type, gpus, preferred))
        if following < 0:
            break
        node = following
    return node


SWAP_BIAS = 0.05  # neighbours swap with probability 0.5 + this if their weights favour it, else 0.5 - this


class ConstructionSettings(NamedTuple):
    """How a round is constructed.

    Attributes:
        constructions: Number of random constructions.
        fill: Whether constructions are ours (`RandomGreedy.fill`); else they are as published.
    """

    constructions: int
    fill: bool


@dataclass(frozen=True, slots=True, eq=False)
class Constructions:
    """The best different constructions of a round, by the proxy cost.

    Attributes:
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
        cls,
        view: View,
        rng: Generator,
        constructions: int,
        *,
        size: int = 1,
        epochs: Epochs = "worst-case",
        fill: bool = False,
    ) -> Constructions:
        """Construct the round by Greedy, then at most `constructions` times at random, and keep the `size` best."""
        order = sim.ask_order(view, "pressure" if epochs == "worst-case" else by_pressure(epochs), waiting_only=False)
        left = epochs_left(view, order, epochs)
        costs = np.full(size, np.inf)
        held = np.empty((size, len(order), int(sim.held_columns(view.board))))
        kept = np.empty((size, *view.nodes.shape), dtype=np.int64)
        most = len(view.nodes) * len(order) * int(view.nodes[:, at.NODE_GPUS].max())
        settings = ConstructionSettings(min(constructions, most), fill)
        construct(view.board, order, left, settings, rng, costs, held, kept)
        found = np.isfinite(costs)
        return cls(order, left, costs[found], held[found], kept[found])

    def restore(self, view: View, index: int) -> None:
        sim.restore(view.board, self.order, self.held[index], self.kept[index])
        sim.measure(view.board)

    def restore_best(self, view: View) -> None:
        self.restore(view, int(np.argmin(self.costs)))


@kernel
def construct(
    board: Board,
    order: Ints,
    left: Floats,
    settings: ConstructionSettings,
    rng: Generator,
    costs: Floats,
    held: Floats,
    kept: Ints,
) -> None:
    """Construct a round by Greedy, then at random; `offer` each to the elite in `costs`, `held` and `kept`.

    Args:
        costs: Costs of the elite, (K,); inf where there is none yet.
        held: What the jobs hold in each, (K, A, HELD).
        kept: The state of the nodes in each, (K, N, columns of `layout`).
    """
    configs, fill = board.facts.configs, settings.fill
    dispatch(board, order, left)
    finish_round(board, order, left, fill)
    offer(board, order, proxy_with(board, order, left), costs, held, kept)
    ranking = np.empty((order.shape[0], configs.shape[0]), dtype=np.int64)
    allowed = np.empty(order.shape[0], dtype=np.int64)
    for i in range(order.shape[0]):
        allowed[i] = preference(board, order[i], left[i], ranking[i])
    turn = np.empty(order.shape[0], dtype=np.int64)
    sim.clear(board, order)
    nodes, capacity = board.nodes.copy(), board.capacity.copy()
    for _ in range(settings.constructions):
        _shuffle(board, order, turn, rng, fill)
        for k in range(turn.shape[0]):
            if not any_capacity(board):
                break
            i = turn[k]
            _place_at_random(board, order[i], ranking[i], int(allowed[i]), rng, fill)
        finish_round(board, order, left, fill)
        offer(board, order, proxy_with(board, order, left), costs, held, kept)
        sim.empty_as(board, order, nodes, capacity)


@kernel
def _shuffle(board: Board, order: Ints, turn: Ints, rng: Generator, fill: bool) -> None:
    """Write the turns of the jobs of the round, (A,): as in `order`, with random swaps of neighbours.

    As published, the probability of a swap is above one half if the earlier job is heavier; with `fill` if it is not.
    """
    jobs = board.jobs
    for i in range(order.shape[0]):
        turn[i] = i
    for i in range(order.shape[0] - 1):
        first, second = jobs[order[turn[i]], at.WEIGHT], jobs[order[turn[i + 1]], at.WEIGHT]
        likely = second > first if fill else first > second
        if rng.random() < 0.5 + (SWAP_BIAS if likely else -SWAP_BIAS):
            turn[i], turn[i + 1] = turn[i + 1], turn[i]


@kernel
def _place_at_random(board: Board, job: int, ranking: Ints, allowed: int, rng: Generator, fill: bool) -> None:
    configs = board.facts.configs
    pick = (board, job, ranking, allowed, rng)
    config = pass_to_config(*pick) if fill else pick_config(*pick)
    if config < 0:
        return
    if configs[config, at.CONFIG_UNITS] > 0 or configs[config, at.CONFIG_NODES] > 1:
        sim.place(board, job, config)
        return
    v, gpus, preferred = (
        configs[config, at.CONFIG_TYPE],
        configs[config, at.CONFIG_GPUS],
        int(board.jobs[job, at.PREFERRED_NODE]),
    )
    node = pass_to_node(board, v, gpus, preferred, rng) if fill else pick_node(board, v, gpus, preferred, rng)
    sim.take(board, job, config, node, -1)


class Search:
    """A search over rounds, which does not support some tenancies."""

    __slots__ = ()
    refused: tuple[Tenancy, ...] = ("quota", "cells")  # exchanges do not count quotas, nor bind cells

    def check(self, instance: Instance) -> None:
        tenancy = Tenants.of(instance).tenancy
        if tenancy in self.refused:
            raise InputError("tenancy", tenancy, f"none of {', '.join(self.refused)}")


@dataclass(frozen=True, slots=True)
class RandomGreedy(Search):
    """Random Greedy (RG): Greedy, then randomised constructions; keeps the best by the proxy cost of the round.

    A construction swaps neighbours in the order of pressure, and places each job on one of the best configurations that
    fit, on one of the best nodes: one of the best twentieth, at least the best. So with fewer than 30 configurations or
    nodes to choose from, it is the best. Shares and whole nodes go to their best place.

    With `fill` it is our own variant: the swaps favour heavier jobs; configurations and nodes are taken by biased
    random rank, the best, or with a small probability the next best, and so on; and idle GPUs go to jobs as in
    `Greedy(fill=True)`.

    Args:
        constructions: Most constructions per round, ≥ 0; never more than nodes · jobs · most GPUs of a node.
        name: Name, as tables show it; with `fill` by default "random-greedy:fill".
        epochs: The estimate of the epochs left, in the pressure, the choice of configurations and the proxy: all that
            are left ("worst-case"); the mean less those done, and all that are left after the mean ("mean", as
            published); or the mean given those done ("conditional-mean").
        fill: Whether constructions are ours; else they are as published.

    Raises:
        InputError: `constructions` is not a whole number ≥ 0, or there is no such `epochs`.
    """

    constructions: int = 1000
    name: str = "random-greedy"
    preemption: bool = True
    epochs: Epochs = "worst-case"
    fill: bool = False
    refused = ("cells",)  # constructions do not keep the binding of cells

    def __post_init__(self) -> None:
        checks.whole("constructions", self.constructions, 0)
        check_epochs(self.epochs)
        if self.fill and self.name == "random-greedy":
            object.__setattr__(self, "name", "random-greedy:fill")

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs again."""
        found = Constructions.of(view, rng, self.constructions, epochs=self.epochs, fill=self.fill)
        found.restore_best(view)


def random_greedy_mean() -> RandomGreedy:
    """Make Random Greedy on mean execution times, as published."""
    return RandomGreedy(name="random-greedy:mean", epochs="mean")


def random_greedy_conditional_mean() -> RandomGreedy:
    """Make Random Greedy on the execution times expected given the epochs done."""
    return RandomGreedy(name="random-greedy:conditional-mean", epochs="conditional-mean")
