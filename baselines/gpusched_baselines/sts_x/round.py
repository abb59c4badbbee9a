"""One round of STS-X: who runs now, on what and where, and who waits until when."""

from __future__ import annotations

import numpy as np

from gpusched_baselines.planning.plan import Scratch, new_scratch
from gpusched_baselines.sts_x.appraisal import Parts, Plans, appraise, caution
from gpusched_baselines.sts_x.plan import RESTART, WEIGHT, Steering, factor, plan_ahead, price_out, spread
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel, threaded_kernel


@threaded_kernel
def plan_round(board: Board, parts: Parts, steering: Steering) -> None:
    """Plan the round on an empty cluster; write what every job shall get to `memory`, and nothing else.

    Args:
        parts: Which parts of the policy are in use.
        steering: What is said of the round; `unsteered` for nothing but the rates.
    """
    active = board.active[: board.count[at.ACTIVE]]
    scratch = new_scratch(board.facts.configs.shape[0] + 1)
    plans = appraise(board, active, parts, steering, scratch)
    held, kept = sim.begin_plan(board, True)
    order = sim.ranked_in_groups(plans.group, plans.key)
    _place_jobs(board, plans, order, parts, steering, scratch)
    if parts.spreads:
        spread(board, active)
    if parts.stays:
        _settle(board, plans.jobs, order, held[:, sim.HELD :], parts.consolidates)
    sim.write_plan(board)
    for i in range(active.shape[0]):
        board.memory[active[i], sim.WAKE] = plans.wake[i]
    sim.end_plan(board, held, kept)


@kernel
def _place_jobs(board: Board, plans: Plans, order: Ints, parts: Parts, steering: Steering, scratch: Scratch) -> None:
    """Place the jobs as planned on the empty cluster, in their order."""
    configs, room, first = board.facts.configs, board.room, plans.first
    demand = np.zeros(room.shape[0])  # GPUs that calm jobs want and do not have yet, by type
    for i in range(first.shape[0]):
        gpus = configs[first[i], at.CONFIG_SIZE] / at.UNITS
        demand[configs[first[i], at.CONFIG_TYPE]] += 0.0 if plans.urgent[i] else gpus
    for i in order:
        job, v = plans.jobs[i], configs[first[i], at.CONFIG_TYPE]
        if plans.urgent[i]:
            if not _put(board, job, first[i], True, parts.consolidates):
                plans.wake[i] = _put_what_fits(board, plans, i, parts, steering, scratch)
            continue
        opens = demand[v] >= room[v, at.LARGEST] or sim.keeps_config(board, job, first[i])
        if _put(board, job, first[i], opens, parts.consolidates):
            plans.wake[i] = np.inf
        elif sim.would_restart(board, job):  # rather than wait for something better, it goes on as it is
            _put(board, job, int(board.jobs[job, at.OLD_CONFIG]), True, parts.consolidates)
        demand[v] -= configs[first[i], at.CONFIG_SIZE] / at.UNITS


@kernel
def _put_what_fits(board: Board, plans: Plans, i: int, parts: Parts, steering: Steering, scratch: Scratch) -> float:
    """Plan an urgent job over what fits now, place it, and return its wake-up; inf if nothing fits."""
    rate, size = steering.rate, steering.rate.shape[0]
    job, scale, any_fits = plans.jobs[i], plans.scale[i], False
    for c in range(size):
        any_fits |= board.tau[job, c] < np.inf and sim.may_have(board, job, c)
    if not any_fits:
        return np.inf
    seconds, price = scratch.seconds[:size], scratch.price[:size]
    price_out(board, rate, job, caution(scale) * factor(steering, i, RESTART), seconds, price)
    for c in range(size):
        seconds[c] = seconds[c] if sim.may_have(board, job, c) else np.inf
    heavier = factor(steering, i, WEIGHT)
    config, wake, _ = plan_ahead(board, job, seconds, price, scale / heavier, parts.guarantees, scratch)
    _put(board, job, config, True, parts.consolidates)
    return wake


@lean_kernel
def _put(board: Board, job: int, config: int, may_open: bool, consolidates: bool) -> bool:
    """Place a job, on a node that is on if there is one with room, on another one only with `may_open`."""
    if not sim.may_have(board, job, config):
        return False
    opening, leaves = sim.moves_on(board, job, config)
    if opening and not may_open:
        return False
    if leaves and consolidates:
        sim.forget_place(board, job)
    return sim.place(board, job, config)


@kernel
def _settle(board: Board, chosen: Ints, order: Ints, homes: Floats, consolidates: bool) -> None:
    """Place the jobs again so that none that keeps its configuration moves, if all can keep what they have got then.

    Those that would pay for a move with a restart go back to their places first. What the others have got may not fit
    between them; then everything stays as it was.

    Args:
        chosen: The jobs of the round, (A,).
        order: The order in which they were placed, (A,).
        homes: Their previous places, (A, 2).
    """
    jobs, moved = board.jobs, False
    group = np.empty(chosen.shape[0], dtype=np.int64)
    for i in range(chosen.shape[0]):
        config = int(jobs[chosen[i], at.CONFIG])
        group[i] = 0 if config >= 0 and sim.keeps_config(board, chosen[i], config) else 1
        elsewhere = jobs[chosen[i], at.NODE] != jobs[chosen[i], at.OLD_NODE]
        moved |= group[i] == 0 and (elsewhere or jobs[chosen[i], at.SLOT] != jobs[chosen[i], at.OLD_SLOT])
    if not moved:
        return
    held, kept = np.empty((chosen.shape[0], sim.HELD)), np.empty_like(board.nodes)
    sim.keep(board, chosen, held, kept)
    for i in range(chosen.shape[0]):
        jobs[chosen[i], at.HOME], jobs[chosen[i], at.HOME_SLOT] = homes[i, 0], homes[i, 1]
    sim.clear(board, chosen)
    for turn in range(2):
        for i in order:
            if (
                group[i] == turn
                and held[i, 0] >= 0.0
                and not _put(board, chosen[i], int(held[i, 0]), True, consolidates)
            ):
                sim.restore(board, chosen, held, kept)
                return
