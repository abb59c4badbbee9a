"""The decision process: one step per job that may change, then time runs to the next round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_wakes import due_wake_s
from gpusched_env.simulator.events import advance
from gpusched_env.simulator.placement.placement import place, settle
from gpusched_env.simulator.rounds import begin_round, commit_round, order_round, round_keys

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints


@lean_kernel
def run_to_round(
    jobs: Floats,
    hidden: Floats,
    nodes: Ints,
    configs: Ints,
    room: Ints,
    tau: Floats,
    rates: Floats,
    slowdown: Floats,
    planned: Floats,
    clock: Floats,
    count: Ints,
    active: Ints,
    log: Floats,
    keys: Floats,
    order: Ints,
    preemption: bool,
    kind: int,
) -> None:
    """Run to the next round that asks at least one job, and open it; with none left to ask, every job is done."""
    count[at.TO_ASK] = 0
    count[at.ASKED] = 0
    while advance(jobs, hidden, nodes, configs, room, tau, rates, clock, count, active, log):
        if count[at.ACTIVE] == 0:
            continue
        begin_round(jobs, nodes, count, active, room, preemption)
        round_keys(jobs, clock, count, active, keys, kind)
        order_round(jobs, count, active, keys, order, not preemption)
        if count[at.TO_ASK] > 0:
            return
        commit_round(jobs, hidden, nodes, tau, rates, slowdown, planned, clock, count, active, log)


@lean_kernel
def decide(
    jobs: Floats,
    hidden: Floats,
    nodes: Ints,
    configs: Ints,
    room: Ints,
    tau: Floats,
    rates: Floats,
    slowdown: Floats,
    planned: Floats,
    clock: Floats,
    count: Ints,
    active: Ints,
    log: Floats,
    keys: Floats,
    order: Ints,
    preemption: bool,
    kind: int,
    least_rate: Floats,
    action: int,
) -> bool:
    """Apply `action` to the job at hand: 0 = wait, a = configuration a - 1; after the last job, run to the next round.

    If `count` asks for it, the job wakes its round in time for its due date.

    Returns:
        False if the action could not be placed: then the job waits.
    """
    job = order[count[at.ASKED]]
    placed = action == 0
    if action > 0 and tau[job, action - 1] < np.inf:
        if count[at.CONSOLIDATES] > 0:
            settle(jobs, nodes, configs, room, job, action - 1)
        placed = place(jobs, nodes, configs, room, job, action - 1)
    if count[at.DUE_WAKES] > 0:
        jobs[job, at.WAKE_S] = due_wake_s(jobs, tau, least_rate, clock[at.NOW], job)
    count[at.ASKED] += 1
    if count[at.ASKED] == count[at.TO_ASK]:
        commit_round(jobs, hidden, nodes, tau, rates, slowdown, planned, clock, count, active, log)
        run_to_round(
            jobs,
            hidden,
            nodes,
            configs,
            room,
            tau,
            rates,
            slowdown,
            planned,
            clock,
            count,
            active,
            log,
            keys,
            order,
            preemption,
            kind,
        )
    return placed
