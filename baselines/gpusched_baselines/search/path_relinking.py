"""Path Relinking, a search on the paths between the best of many constructions; and Local Search from the best.

`order`, (A,), are the jobs of the round by decreasing pressure, and `left`, (A,), their estimated epochs left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.dispatch import dispatch, finish_round
from gpusched_baselines.search import proxy_parts as its
from gpusched_baselines.search.constructions import Constructions, Search
from gpusched_baselines.search.exchanges import best_exchange, sweep_moves
from gpusched_baselines.search.proxy_parts import proxy_with
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator


LEAST_COST_EUR = 1e-9  # a job that costs nothing counts as one that costs this


@kernel
def guidance(board: Board, order: Ints, left: Floats) -> float:
    """Sum max execution time / (energy cost + tardiness cost) over the running jobs [s/€]; larger is better.

    All three are those of the epochs left; the energy cost is the job's part of that of its nodes with their jobs.
    """
    jobs, tau = board.jobs, board.tau
    total = 0.0
    for i in range(order.shape[0]):
        config = int(jobs[order[i], at.CONFIG])
        if config >= 0:
            rate = sim.charge(board, order[i], config)
            total += merit(board, order[i], left[i], left[i] * tau[order[i], config], rate)
    return total


@kernel
def merit(board: Board, job: int, left: float, seconds: float, rate: float) -> float:
    """Return one job's part of the guidance [s/€], if it runs for `seconds` at `rate` [€/s]."""
    jobs, now = board.jobs, board.clock[at.NOW]
    late = max(0.0, now + seconds - jobs[job, at.DUE])
    return left * jobs[job, at.MAX_TAU] / max(LEAST_COST_EUR, rate * seconds + jobs[job, at.WEIGHT] * late)


@kernel
def relink(board: Board, order: Ints, left: Floats, goal: Floats, held: Floats, kept: Ints) -> float:
    """Move the jobs one by one from their placement towards `goal`; keep the best solution on the way, not the start.

    A move places a job on its configuration in the goal, in its best place, or lets it wait as there. The moves with
    most gain come first. A move that does not fit is tried again after the others; if none fits, the running job with
    least gain waits until its configuration fits.

    Args:
        goal: The configurations that they hold in the goal, (A,); -1: none.
        held: What the jobs hold in the best solution, (A, HELD); written.
        kept: The state of the nodes in it, (N, columns of `layout`); written.

    Returns:
        The guidance of the best solution [s/€]; -inf if nothing could be moved.
    """
    best = -np.inf
    to_do = _moves(board, order, left, goal)
    while to_do.shape[0] > 0:
        failed = 0
        for i in to_do:
            if _move(board, order[i], int(goal[i])):
                value = guidance(board, order, left)
                if value > best:
                    best = value
                    sim.keep(board, order, held, kept)
            else:
                to_do[failed] = i
                failed += 1
        if failed == to_do.shape[0] and not _let_one_wait(board, order, to_do):
            break
        to_do = to_do[:failed]
    return best


@kernel
def _moves(board: Board, order: Ints, left: Floats, goal: Floats) -> Ints:
    """List the positions of the jobs that hold another configuration in the goal, by decreasing gain.

    The gain is the increase of the guidance, as if every job were alone on its nodes.
    """
    jobs, tau = board.jobs, board.tau
    gains = np.zeros(order.shape[0])
    for i in range(order.shape[0]):
        job, old, new = order[i], int(jobs[order[i], at.CONFIG]), int(goal[i])
        rate = board.planning_rate[int(jobs[job, at.APPLICATION])]
        if new >= 0:
            gains[i] += merit(board, job, left[i], left[i] * tau[job, new], rate[new])
        if old >= 0:
            gains[i] -= merit(board, job, left[i], left[i] * tau[job, old], rate[old])
    ranks = np.argsort(-gains, kind="mergesort")
    return ranks[jobs[order[ranks], at.CONFIG] != goal[ranks]]


@kernel
def _move(board: Board, job: int, config: int) -> bool:
    if config >= 0:
        return sim.place(board, job, config)
    sim.release(board, job)
    return True


@kernel
def _let_one_wait(board: Board, order: Ints, to_do: Ints) -> bool:
    jobs = board.jobs
    for i in to_do[::-1]:
        if jobs[order[i], at.CONFIG] >= 0:
            sim.release(board, order[i])
            return True
    return False


@dataclass(frozen=True, slots=True)
class PathRelinking(Search):
    """Path Relinking (PR): searches for better solutions between the best of Random Greedy's constructions.

    The elite are the constructions with the least proxy cost. Solutions are then compared by guidance: Σ max execution
    time / (energy cost + tardiness cost) over the running jobs; larger is better. A path goes from the best of the
    elite towards each other: job after job takes the configuration that it has there. The best solution on the path is
    completed (waiting jobs that fit are placed, and the round is finished as a construction is); if it is the best so
    far, the next paths begin there.

    The published method also ranks the elite by guidance, chooses each move again, and evaluates one move ahead.

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

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs again."""
        found = Constructions.of(view, rng, self.constructions, size=self.elite, fill=self.fill)
        relink_all(view.board, found.order, found.left, found.held, found.kept, self.fill)


@kernel
def relink_all(board: Board, order: Ints, left: Floats, held: Floats, kept: Ints, fill: bool) -> float:
    """Place the jobs as in the best of the elite, or as in a better solution on the paths from it to the others.

    Args:
        held: What the jobs hold in each of the elite, (K, A, HELD).
        kept: The state of the nodes in each, (K, N, columns of `layout`).

    Returns:
        Its guidance [s/€].
    """
    best, value = 0, -np.inf
    for k in range(held.shape[0]):
        sim.restore(board, order, held[k], kept[k])
        own = guidance(board, order, left)
        if own > value:
            best, value = k, own
    best_held, best_nodes = held[best].copy(), kept[best].copy()
    way_held, way_nodes = np.empty_like(best_held), np.empty_like(best_nodes)
    for k in range(held.shape[0]):
        sim.restore(board, order, best_held, best_nodes)
        sim.measure(board)
        goal = held[k, :, 0].copy()
        found = relink(board, order, left, goal, way_held, way_nodes)
        if found == -np.inf:
            continue
        sim.restore(board, order, way_held, way_nodes)
        sim.measure(board)
        dispatch(board, order, left)
        finish_round(board, order, left, fill)
        found = guidance(board, order, left)
        if found > value:
            value = found
            sim.keep(board, order, best_held, best_nodes)
    sim.restore(board, order, best_held, best_nodes)
    sim.measure(board)
    return value


@dataclass(frozen=True, slots=True)
class LocalSearch(Search):
    """Local Search (LS): improves the best round of Random Greedy until no exchange or move reduces its proxy cost.

    Two jobs may exchange what they hold: two running ones, or a waiting one and a running one of no higher pressure.
    With `moves` a job may also take another configuration, or the same one elsewhere; a waiting job one that fits. A
    running job gets slower only if it still meets its due date in the worst case, and stops only in an exchange.

    The published search has only exchanges, and allows all that reduce the proxy cost.

    Args:
        constructions: Most constructions of Random Greedy per round, ≥ 0.
        iterations: Most iterations per round, ≥ 0. Each makes the best exchange and the best move of every job.
        moves: Whether jobs may move; False for exchanges only, as published.
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

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs again."""
        found = Constructions.of(view, rng, self.constructions, fill=self.fill)
        found.restore_best(view)
        improve(view.board, found.order, found.left, self.iterations, self.moves)


@kernel
def improve(board: Board, order: Ints, left: Floats, iterations: int, moves: bool) -> int:
    """Change a round while that reduces its proxy cost, by exchanges and, with `moves`, by moves; return how often."""
    held, kept = np.empty((order.shape[0], sim.held_columns(board))), np.empty_like(board.nodes)
    cost = proxy_with(board, order, left)
    for done in range(iterations):
        sim.keep(board, order, held, kept)
        seen = its.see(board, order, left)
        i, k, _ = best_exchange(board, order, left, seen, sim.bill_rate(board), cost)
        if i >= 0:
            sim.exchange(board, order[i], order[k])
        if moves:
            sweep_moves(board, order, left)
        after = proxy_with(board, order, left)
        if after >= cost:  # no change was found, or its gain is rounding
            sim.restore(board, order, held, kept)
            sim.measure(board)
            return done
        cost = after
    return iterations
