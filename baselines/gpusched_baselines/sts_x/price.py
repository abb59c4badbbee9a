"""What a GPU-second is worth beyond its power: what those who wait for it lose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.sts_x.memory import epochs_expected
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.sorting import ranked

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board

FULL = 0.5  # load of due work from which on a cluster is taken to be full; beyond twice that it makes no difference
LEAST_PRICE = 0.01  # a price below this part of that of power is none


@kernel
def capacity_price(board: Board, chosen: Ints, values: Floats, gpu_seconds: Floats, free_rate: float) -> float:
    """Give the price of a GPU-second, as a multiple of what its power costs in the mean; 0 where GPUs are not short.

    One GPU-second more for a job delays all that wait for it by 1 / GPUs seconds, and a second costs each of them its
    value. How many do wait shows later, how full the cluster is now: the load of due work. So the price is
    Σ values / GPUs · (load / `FULL`)², the load counting as 2 · `FULL` at most. As a multiple it leaves GPU types in
    the proportion of their power: one price for every GPU would send all jobs to the fastest.

    Args:
        chosen: The active jobs, (A,).
        values: What a second is worth to each [€/s], (A,).
        gpu_seconds: GPU-seconds that each is expected to need as it is planned, (A,).
        free_rate: What a GPU counts for where energy is free [€/s].
    """
    total, gpus, power = values.sum(), 0, 0.0
    if total <= 0.0:
        return 0.0
    for n in range(board.nodes.shape[0]):
        most = board.nodes[n, at.NODE_GPUS]
        gpus += most
        power += board.node_rate[board.nodes[n, at.NODE_TYPE], most]
    power = power if power > 0.0 else gpus * free_rate
    full = min(2.0, load_of_due_work(board, chosen, gpu_seconds) / gpus / FULL)
    price = total / power * full * full
    return price if price >= LEAST_PRICE else 0.0


@kernel
def load_of_due_work(board: Board, chosen: Ints, gpu_seconds: Floats) -> float:
    """Give how many GPUs are needed all the time: the most, over due dates, of what is due by then over the time.

    A job that is due before it can be expected to end counts as due when it then ends, as fast as it can.
    """
    jobs, now = board.jobs, board.clock[at.NOW]
    due = np.empty(chosen.shape[0])
    for i in range(chosen.shape[0]):
        job = chosen[i]
        due[i] = max(jobs[job, at.DUE] - now, epochs_expected(board, job) * jobs[job, at.MIN_TAU], 1.0)
    most, total = 0.0, 0.0
    for i in ranked(due, chosen.shape[0]):
        total += gpu_seconds[i]
        most = max(most, total / due[i])
    return most
