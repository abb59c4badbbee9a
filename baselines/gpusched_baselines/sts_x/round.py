"""One round of STS-X: who runs now, on what, and who waits until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.plan import SLACK
from gpusched_baselines.search.solution import keep, restore
from gpusched_baselines.sts_x.plan import plan_job, price_out
from gpusched_baselines.sts_x.spread import spread
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import fits, keeps_config, opens, place, would_restart
from gpusched_env.simulator.rounds import clear, measure

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints, Mask

# Columns of the policy's memory of a job.
ROUND = 0  # round that the other columns are of
PLANNED = 1  # configuration that it shall get in this round, -1 for none
LEAVES = 2  # 1 if it shall not come back to its previous place

START_MARGIN = 0.01  # a job that waits starts when its slack has fallen to this part of its worst-case time
WORTH_A_RESTART = 0.9  # a job changes over to what costs at most this part of what it has, restart included
KEEP_MARGIN = 0.03  # one that runs is no longer interrupted below this: between the two it goes on as it is


@kernel
def plan_round(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    room: Ints,
    tau: Floats,
    rate: Floats,
    node_rate: Floats,
    clock: Floats,
    count: Ints,
    edges: Floats,
    survival: Floats,
    tail: Floats,
    active: Ints,
    memory: Floats,
    waits: bool,
    consolidates: bool,
    spreads: bool,
    smith: bool,
) -> None:
    """Plan the round on an empty cluster; write what every job shall get to `memory`, and the wake-ups.

    A job whose cheapest configuration would still meet the due date later is *calm*: it runs if that takes no other
    node than those that are on, or if calm jobs can fill another one; else it waits, and wakes up when its slack ends.
    Every other job is *urgent*: it runs now as its plan says, or as a plan over what still fits does. A calm job that
    runs, and would have to restart, is not interrupted.

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS); the wake-ups are set.
        nodes: State of the nodes; left as it was, like `room`.
        configs: The configurations, (C, CONFIG_COLUMNS).
        room: What fits now by GPU type.
        tau: Seconds per epoch, (J, C).
        rate: Cost rates to plan with [€/s], (C,).
        node_rate: r_v(u) [€/s], (V, G + 1).
        clock: The clock.
        count: The counts.
        edges: Bin edges, (D, B + 1).
        survival: S on each bin, (D, B).
        tail: ∫ S from each edge to 1, (D, B + 1).
        active: The active jobs, (A,).
        memory: The policy's memory, (J, M); written.
        waits: Whether jobs with slack may wait.
        consolidates: Whether jobs leave nodes that the round can do without.
        spreads: Whether idle GPUs of nodes that are on are given to jobs there.
        smith: Whether jobs that must be late go first, by Smith's rule.
    """
    now, total = clock[at.NOW], active.shape[0]
    seconds, price = np.empty((total, configs.shape[0])), np.empty((total, configs.shape[0]))
    first, wake, keys = np.empty(total, dtype=np.int64), np.empty(total), np.empty(total)
    urgent = np.zeros(total, dtype=np.int8)
    for i in range(total):
        price_out(jobs, tau, rate, edges, survival, tail, active[i], seconds[i], price[i])
        status, first[i], wake[i] = plan_job(jobs, edges, survival, tail, now, active[i], seconds[i], price[i])
        urgent[i] = 0 if waits and status == SLACK else 1
        _rank(jobs, seconds, price, now, active, i, urgent, first, wake, keys, smith)
    held, kept = np.empty((total, 3)), np.empty_like(nodes)
    keep(jobs, nodes, active, held, kept)
    clear(jobs, nodes, active, room)
    demand = np.zeros(room.shape[0])  # GPUs that calm jobs want and do not have yet, by type
    for i in range(total):
        demand[configs[first[i], at.CONFIG_TYPE]] += (1 - urgent[i]) * configs[first[i], at.CONFIG_SIZE] / at.UNITS
    for i in np.argsort(keys, kind="mergesort"):
        job, v = active[i], configs[first[i], at.CONFIG_TYPE]
        if urgent[i] == 1:
            if not _put(jobs, nodes, configs, room, job, first[i], True, consolidates):
                wake[i] = _put_what_fits(
                    jobs, nodes, configs, room, edges, survival, tail, now, job, seconds[i], price[i], consolidates
                )
            continue
        opens = demand[v] >= room[v, at.LARGEST] or keeps_config(jobs, job, first[i])
        if _put(jobs, nodes, configs, room, job, first[i], opens, consolidates):
            wake[i] = np.inf
        elif would_restart(jobs, job):  # rather than wait for something better, it goes on as it is
            _put(jobs, nodes, configs, room, job, int(jobs[job, at.OLD_CONFIG]), True, consolidates)
        demand[v] -= configs[first[i], at.CONFIG_SIZE] / at.UNITS
    if spreads:
        spread(jobs, nodes, configs, tau, node_rate, edges, survival, tail, active)
    for i in range(total):
        _remember(jobs, count, active[i], memory, wake[i])
    restore(jobs, nodes, active, held, kept)
    measure(nodes, room)


@kernel
def _remember(jobs: Floats, count: Ints, job: int, memory: Floats, wake: float) -> None:
    """Write what the job shall get, and undo what planning did to its place."""
    memory[job, ROUND], memory[job, PLANNED] = count[at.ROUND], jobs[job, at.CONFIG]
    memory[job, LEAVES] = 1.0 if jobs[job, at.HOME] != jobs[job, at.OLD_NODE] else 0.0
    jobs[job, at.HOME], jobs[job, at.HOME_SLOT] = jobs[job, at.OLD_NODE], jobs[job, at.OLD_SLOT]
    jobs[job, at.WAKE_S] = wake


@kernel
def _rank(
    jobs: Floats,
    seconds: Floats,
    price: Floats,
    now: float,
    active: Ints,
    i: int,
    urgent: Mask,
    first: Ints,
    wake: Floats,
    keys: Floats,
    smith: bool,
) -> None:
    """Tell whether the job is calm after all, what it begins with and when it wakes up, and its place in the order.

    Jobs that must be late come first, by Smith's rule (time left over weight), then urgent ones and calm ones, each by
    slack. Of jobs that restarts cost something, those that run come before the others.
    """
    job = active[i]
    left, time_left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS], jobs[job, at.DUE] - now
    if urgent[i] == 0:
        held = int(jobs[job, at.OLD_CONFIG])
        in_time = would_restart(jobs, job) and left * seconds[i, held] < time_left
        if in_time and price[i, first[i]] > WORTH_A_RESTART * price[i, held]:
            first[i] = held
        worst = left * seconds[i, first[i]]
        slack = time_left - worst
        urgent[i] = 1 if slack <= (KEEP_MARGIN if held >= 0 else START_MARGIN) * worst else 0
        wake[i] = now + slack - 0.999 * START_MARGIN * worst if urgent[i] == 0 else np.inf
        keys[i] = slack - (1e9 if would_restart(jobs, job) else 0.0)
    if urgent[i] == 1:
        fastest = left * jobs[job, at.MIN_TAU]
        keys[i] = time_left - fastest - (2e12 if keeps_config(jobs, job, first[i]) else 1e12)
        if smith and time_left < fastest and jobs[job, at.WEIGHT] > 0.0:
            keys[i] = fastest / jobs[job, at.WEIGHT] - 1e15


@kernel
def _put_what_fits(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    room: Ints,
    edges: Floats,
    survival: Floats,
    tail: Floats,
    now: float,
    job: int,
    seconds: Floats,
    price: Floats,
    consolidates: bool,
) -> float:
    """Plan an urgent job over what fits now, place it, and return its wake-up; inf if nothing fits."""
    possible = seconds.copy()
    for c in range(configs.shape[0]):
        if not fits(configs, room, c):
            possible[c] = np.inf
    _, config, wake = plan_job(jobs, edges, survival, tail, now, job, possible, price)
    if config < 0:
        return np.inf
    _put(jobs, nodes, configs, room, job, config, True, consolidates)
    return wake


@kernel
def _put(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    room: Ints,
    job: int,
    config: int,
    may_open: bool,
    consolidates: bool,
) -> bool:
    """Place a job, on a node that is on if there is one with room, on another one only with `may_open`.

    A job whose previous node would have to be switched on for it lets its place go if another that is on has room.
    """
    if not fits(configs, room, config):
        return False
    one_node = configs[config, at.CONFIG_NODES] == 1
    if one_node and not keeps_config(jobs, job, config) and opens(jobs, nodes, configs, room, job, config):
        home, slot = jobs[job, at.HOME], jobs[job, at.HOME_SLOT]
        jobs[job, at.HOME], jobs[job, at.HOME_SLOT] = -1.0, -1.0
        opening = opens(jobs, nodes, configs, room, job, config)
        if opening or not consolidates:
            jobs[job, at.HOME], jobs[job, at.HOME_SLOT] = home, slot
        if opening and not may_open:
            return False
    return place(jobs, nodes, configs, room, job, config)
