"""The path from one solution of a round towards another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.search.guidance import guidance, merit
from gpusched_baselines.search.solution import keep
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import place, release

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints


@kernel
def relink(
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
    goal: Floats,
    held: Floats,
    kept: Ints,
) -> float:
    """Go from what the jobs hold towards `goal`, a job at a time; keep the best solution on the way, but the start.

    A move gives a job the configuration that it holds in the goal, in its best place, or lets it wait as there. Those
    that gain most come first. One that does not fit is tried again after the others; if none fits, the running job
    that would gain least waits until its configuration fits.

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS); changed.
        nodes: State of the nodes, (N, columns of `layout`); changed.
        configs: The configurations, (C, CONFIG_COLUMNS).
        room: What fits now by GPU type, (V, columns of `layout`); kept up to date.
        tau: Seconds per epoch, (J, C).
        rate: Planned cost rates [€/s], (C,).
        node_rate: r_v(u) [€/s], (V, G + 1).
        order: The jobs of the round, (A,).
        left: The epochs that they are taken to have left, (A,).
        now: Present time [s].
        goal: The configurations that they hold in the goal, (A,); -1: none.
        held: What the jobs hold in the best solution, (A, HELD); written.
        kept: The state of the nodes in it, (N, columns of `layout`); written.

    Returns:
        The guidance of the best solution [s/€]; -inf if nothing could be moved.
    """
    best = -np.inf
    to_do = _moves(jobs, tau, rate, order, left, now, goal)
    while to_do.shape[0] > 0:
        failed = 0
        for i in to_do:
            if _move(jobs, nodes, configs, room, order[i], int(goal[i])):
                value = guidance(jobs, nodes, configs, tau, node_rate, order, left, now)
                if value > best:
                    best = value
                    keep(jobs, nodes, order, held, kept)
            else:
                to_do[failed] = i
                failed += 1
        if failed == to_do.shape[0] and not _let_one_wait(jobs, nodes, configs, room, order, to_do):
            break
        to_do = to_do[:failed]
    return best


@kernel
def _moves(jobs: Floats, tau: Floats, rate: Floats, order: Ints, left: Floats, now: float, goal: Floats) -> Ints:
    """List the positions of the jobs that hold another configuration in the goal, by decreasing gain.

    The gain is that of the guidance, as if every job were alone on its nodes.
    """
    gains = np.zeros(order.shape[0])
    for i in range(order.shape[0]):
        job, old, new = order[i], int(jobs[order[i], at.CONFIG]), int(goal[i])
        if new >= 0:
            gains[i] += merit(jobs, job, left[i], left[i] * tau[job, new], rate[new], now)
        if old >= 0:
            gains[i] -= merit(jobs, job, left[i], left[i] * tau[job, old], rate[old], now)
    ranks = np.argsort(-gains, kind="mergesort")
    return ranks[jobs[order[ranks], at.CONFIG] != goal[ranks]]


@kernel
def _move(jobs: Floats, nodes: Ints, configs: Ints, room: Ints, job: int, config: int) -> bool:
    """Give `job` a configuration, if it fits, or let it wait (-1)."""
    if config >= 0:
        return place(jobs, nodes, configs, room, job, config)
    release(jobs, nodes, configs, room, job)
    return True


@kernel
def _let_one_wait(jobs: Floats, nodes: Ints, configs: Ints, room: Ints, order: Ints, to_do: Ints) -> bool:
    """Let the last job of `to_do` that runs wait; return False if none runs."""
    for i in to_do[::-1]:
        if jobs[order[i], at.CONFIG] >= 0:
            release(jobs, nodes, configs, room, order[i])
            return True
    return False
