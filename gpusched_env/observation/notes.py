"""What observations keep from one decision to the next: scratch, and tallies of the jobs."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from gpusched_env.arrays import Floats, Ints, Singles
from gpusched_env.kernel import lean_kernel
from gpusched_env.named_arrays import NamedArrays
from gpusched_env.observation.job import JOB_FEATURES
from gpusched_env.observation.ratios import squash
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.state import Common

# tallies: int64 (TALLY_COLUMNS + V + R,), with R = K + 1 rows of other jobs, or none. They are of one round, and of the
# moment when one of its jobs is the current one.
ROUND = 0  # the round; -1: none, so that the next observation counts again
ASKED = 1  # jobs of the round asked before that moment
WAITING = 2  # active jobs that hold nothing then
LATE = 3  # active jobs that are late
TIGHTEST_JOB = 4  # the job with the least slack ratio
TALLY_COLUMNS = 5  # then, by GPU type, the units that jobs asked later want; then the jobs of the rows

# sums: float64 (SUM_COLUMNS + R,).
SLACK = 0  # sum of the slack ratios of the active jobs
TIGHTEST = 1  # the least of them, at most 1
SECOND = 2  # the least but that one, at most 1
WEIGHT = 3  # sum of the tardiness weights [€/s]
SUM_COLUMNS = 4  # then the pressures of the jobs of the rows


@lean_kernel
def slack_ratio(board: Board, job: int) -> float:
    """Return squash(D / T): the time to the due date over the least execution time left in the worst case."""
    jobs = board.jobs
    fastest = (jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]) * jobs[job, at.MIN_TAU]
    return squash((jobs[job, at.DUE] - board.clock[at.NOW]) / max(fastest, 1e-9))


@lean_kernel
def bring_up_to_date(board: Board, notes: Notes) -> bool:
    """Bring tallies and sums to the current job: job by job if they are of an earlier one of this round, else again.

    Where a job that is placed may take GPUs from jobs that were asked before it, it always counts again.
    Returns whether it counted again.
    """
    jobs, count, order, tallies = board.jobs, board.count, board.order, notes.tallies
    asked = count[at.ASKED]
    again = tallies[ROUND] != count[at.ROUND] or tallies[ASKED] > asked or hooks.takes_from_others(board, False)
    if again:
        _tally(board, notes)
    for i in range(tallies[ASKED], asked):
        if jobs[order[i], at.CONFIG] >= 0:
            tallies[WAITING] -= 1
        _add_wish(board, order[i + 1], -1, tallies)
    tallies[ASKED] = asked
    return again


@lean_kernel
def _tally(board: Board, notes: Notes) -> None:
    """Count and sum over all active jobs."""
    jobs, count, active, order = board.jobs, board.count, board.active, board.order
    tallies, sums, now = notes.tallies, notes.sums, board.clock[at.NOW]
    waiting, late, slack, weight = 0, 0, 0.0, 0.0
    tightest, second, tightest_job = 1.0, 1.0, -1
    for i in range(count[at.ACTIVE]):
        job = active[i]
        waiting += 1 if jobs[job, at.CONFIG] < 0 else 0
        late += 1 if jobs[job, at.DUE] - now < 0.0 else 0
        weight += jobs[job, at.WEIGHT]
        ratio = slack_ratio(board, job)
        slack += ratio
        if ratio < tightest:
            tightest, second, tightest_job = ratio, tightest, job
        else:
            second = min(second, ratio)
    tallies[ROUND], tallies[ASKED] = count[at.ROUND], count[at.ASKED]
    tallies[WAITING], tallies[LATE], tallies[TIGHTEST_JOB] = waiting, late, tightest_job
    sums[SLACK], sums[TIGHTEST], sums[SECOND], sums[WEIGHT] = slack, tightest, second, weight
    tallies[TALLY_COLUMNS:] = 0
    for i in range(count[at.ASKED], count[at.TO_ASK]):
        if jobs[order[i], at.CONFIG] >= 0:  # through a view, before it is asked: its own decision will change less
            tallies[ROUND] = -1
        if i > count[at.ASKED]:
            _add_wish(board, order[i], 1, tallies)


@lean_kernel
def _add_wish(board: Board, job: int, times: int, tallies: Ints) -> None:
    jobs, configs = board.jobs, board.facts.configs
    config = int(jobs[job, at.CHEAPEST])
    left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
    if config >= 0 and not misses(left * jobs[job, at.CHEAPEST_TAU], jobs[job, at.DUE] - board.clock[at.NOW]):
        tallies[TALLY_COLUMNS + configs[config, at.CONFIG_TYPE]] += times * configs[config, at.CONFIG_SIZE]


# types: float64 (V, TYPE_COLUMNS). All 0 for a type without nodes, but MOST.
GPUS = 0  # GPUs of the type
NODES = 1  # nodes of the type
LARGEST = 2  # GPUs of its largest node
GPU_SHARE = 3  # GPUs of the type / GPUs of the cluster
ONE_BUSY = 4  # cost rate of a node with one busy GPU / with all busy
START_RATE = 5  # cost rate of a node with one busy GPU / the largest such of any type
NODES_LOG = 6  # log10(1 + nodes) / 4, at most 1
MOST = 7  # the most GPUs of any configuration, whatever its type
TYPE_COLUMNS = 8

# offers: float64 (A, C, OFFER_COLUMNS).
SIZE_SHARE = 0  # its GPUs / the most GPUs of any configuration
RATE_SHARE = 1  # its cost rate / the largest of any configuration
GPU_PART = 2  # share of each GPU
INVERSE_RATE = 3  # 1 / its cost rate [s/€]; 0 where that is 0
OFFER_COLUMNS = 4

# spare: int64 (V, SPARE_COLUMNS + G + 1).
FREE = 0  # free GPUs
IDLE = 1  # nodes not in use
FREE_IN_USE = 2  # free GPUs of nodes in use
FREE_BLOCK_IN_USE = 3  # most free GPUs on a node in use
FREE_BLOCK_IN_PART = 4  # most free GPUs on a node that is not an empty one of the largest size
SPARE_COLUMNS = 5  # then, for g = 0 to G: busy GPUs of the fullest node in use with g free ones or more; 0: none


class Notes(NamedArrays):
    """State that the observations of one run keep.

    Attributes:
        types: Constants of the GPU types, (V, TYPE_COLUMNS).
        offers: Constants of the configurations, by application, (A, C, OFFER_COLUMNS).
        tallies: Counts of the round (`tallies`), (TALLY_COLUMNS + V + R,).
        sums: Sums of the round (`tallies`), (SUM_COLUMNS + R,).
        spare: Free GPUs on the nodes of the GPU types now, (V, SPARE_COLUMNS + G + 1).
        rows: The rows of other jobs as the round began (`jobs`), (R, features).
    """

    together = ("tallies", "sums", "spare")

    types: Annotated[Floats, 2]
    offers: Annotated[Floats, 3]
    tallies: Annotated[Ints, 1]
    sums: Annotated[Floats, 1]
    spare: Annotated[Ints, 2]
    rows: Annotated[Singles, 2]

    @classmethod
    def of(cls, board: Board, common: Common | None = None, job_features: int = 0) -> Notes:
        """Begin the notes of a run with K `job_features`; constant parts are kept once in `common`."""
        types, busy = board.node_rate.shape
        rows = job_features + 1 if job_features else 0  # one more: the current job may be among them
        fixed = np.empty((types, TYPE_COLUMNS)), np.empty((*board.planning_rate.shape, OFFER_COLUMNS))
        write_fixed(board, *fixed)
        kept = [array if common is None else common.once(array) for array in fixed]
        return cls(
            types=kept[0],
            offers=kept[1],
            tallies=np.full(TALLY_COLUMNS + types + rows, -1),
            sums=np.empty(SUM_COLUMNS + rows),
            spare=np.empty((types, SPARE_COLUMNS + busy), dtype=np.int64),
            rows=np.empty((rows, len(JOB_FEATURES) + 1), np.float32),
        )

    def forget(self) -> None:
        """Discard the counts, so that the next observation counts again: needed after a round was changed outside."""
        self.tallies[ROUND] = -1


@lean_kernel
def write_fixed(board: Board, types: Floats, offers: Floats) -> None:
    """Write the facts of every GPU type to `types`, and of every application and configuration to `offers`."""
    nodes, configs, capacity = board.nodes, board.facts.configs, board.capacity
    rate, node_rate = board.planning_rate, board.node_rate
    most, costliest = 1.0, 0.0
    for c in range(configs.shape[0]):
        most = max(most, configs[c, at.CONFIG_SIZE] / at.UNITS)
        for a in range(rate.shape[0]):
            costliest = max(costliest, rate[a, c])
    for c in range(configs.shape[0]):
        units = configs[c, at.CONFIG_UNITS]
        for a in range(rate.shape[0]):
            offers[a, c, SIZE_SHARE] = configs[c, at.CONFIG_SIZE] / at.UNITS / most
            offers[a, c, RATE_SHARE] = rate[a, c] / costliest if costliest > 0.0 else 0.0
            offers[a, c, INVERSE_RATE] = 1.0 / rate[a, c] if rate[a, c] > 0.0 else 0.0
            offers[a, c, GPU_PART] = units / at.UNITS if units > 0 else 1.0
    types[:, :] = 0.0
    for n in range(nodes.shape[0]):
        v, gpus = nodes[n, at.NODE_TYPE], nodes[n, at.NODE_GPUS]
        types[v, GPUS] += gpus
        types[v, NODES] += 1.0
        types[v, LARGEST] = max(types[v, LARGEST], gpus)
    gpus_of_all, costliest_start = 0.0, 0.0
    for v in range(capacity.shape[0]):
        gpus_of_all += types[v, GPUS]
        costliest_start = max(costliest_start, node_rate[v, 1])
    for v in range(capacity.shape[0]):
        types[v, MOST] = most
        if types[v, NODES] == 0.0:
            continue
        start, full = node_rate[v, 1], node_rate[v, int(types[v, LARGEST])]
        types[v, GPU_SHARE] = types[v, GPUS] / gpus_of_all
        types[v, ONE_BUSY] = start / full if full > 0.0 else 0.0
        types[v, START_RATE] = start / costliest_start if costliest_start > 0.0 else 0.0
        types[v, NODES_LOG] = min(1.0, np.log10(1.0 + types[v, NODES]) / 4.0)


@lean_kernel
def write_spare(board: Board, spare: Ints) -> int:
    """Write the free GPUs by type to `spare`; return those of the cluster."""
    nodes, capacity = board.nodes, board.capacity
    spare[:, :] = 0
    total = 0
    for n in range(nodes.shape[0]):
        v, free, gpus = nodes[n, at.NODE_TYPE], nodes[n, at.FREE], nodes[n, at.USABLE]
        total += free
        spare[v, FREE] += free
        if free == gpus:
            spare[v, IDLE] += 1 if gpus > 0 else 0
        else:
            spare[v, FREE_IN_USE] += free
            spare[v, FREE_BLOCK_IN_USE] = max(spare[v, FREE_BLOCK_IN_USE], free)
            spare[v, SPARE_COLUMNS + free] = gpus - free
        if free < capacity[v, at.LARGEST]:
            spare[v, FREE_BLOCK_IN_PART] = max(spare[v, FREE_BLOCK_IN_PART], free)
    for v in range(spare.shape[0]):
        for column in range(spare.shape[1] - 2, SPARE_COLUMNS - 1, -1):
            if spare[v, column] == 0:
                spare[v, column] = spare[v, column + 1]
    return total
