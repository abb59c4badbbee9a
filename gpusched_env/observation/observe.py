"""The whole observation of the current job."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Ints, Mask, Singles
from gpusched_env.kernel import lean_kernel
from gpusched_env.observation import notes as of
from gpusched_env.observation.cluster import FREE, write_cluster
from gpusched_env.observation.job import write_job
from gpusched_env.observation.jobs import count_jobs, write_jobs
from gpusched_env.observation.notes import ROUND, Notes, bring_up_to_date, slack_ratio, write_spare
from gpusched_env.observation.ratios import ONE_PERCENT, Names, squash
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.placement.placement import can_place
from gpusched_env.simulator.run import Board

_option = Names()
PLACEABLE = _option("1 if it can be placed now")
IN_TIME = _option("1 if it meets the due date in the worst case")
IN_TIME_EXPECTED = _option("1 if it meets the due date in expectation")
ENERGY = _option("1 - least energy cost / its energy cost, alone on the node")
WORST_COST = _option("c / (c + least worst-case energy cost), c = worst-case energy + tardiness cost")
EXPECTED_COST = _option("c / (c + least worst-case energy cost), c = energy + tardiness cost at the expected epochs")
SPEED = _option("1 - least seconds per epoch / its seconds per epoch")
SLACK = _option("squash((D - its worst-case execution time) / T)")
RATE = _option("its cost rate / the largest of any configuration")
GPUS = _option("its GPUs / the most GPUs of any configuration")
SHARE = _option("share of each GPU")
HELD = _option("1 if the job held it before this round")
TYPE_FREE = _option("free GPUs of its type / GPUs of its type")
FREE_BLOCK_AFTER = _option("GPUs left on the emptiest node of its type after it / the most GPUs of any configuration")
IN_USE = _option("1 if it fits on a node that is in use")
ADDED_COST = _option("c / (c + L), c = worst-case energy cost that it adds to the bill now")
FULL_COST = _option("c / (c + L), c = its worst-case energy cost in full nodes")
NEAR_SLACK = _option("squash((D - W) / W / 1 %), W = its worst-case execution time")
OPTION_FEATURES = tuple(_option)


@lean_kernel
def write_mask(board: Board, job: int, mask: Mask) -> None:
    """Write what can be placed now: `mask[0]` (wait) is 1, `mask[c + 1]` is 1 if configuration c can be."""
    configs, tau = board.facts.configs, board.tau
    mask[0] = 1
    for c in range(configs.shape[0]):
        mask[c + 1] = (tau[job, c] < np.inf) & can_place(board, job, c)


@lean_kernel
def write_options(
    board: Board, notes: Notes, job: int, expected: float, least: float, cluster: Singles, mask: Mask, out: Singles
) -> None:
    """Write a row of features per configuration; a configuration that is not allowed has only zeros.

    squash(x / y) is x / (y + |x|) here: one division, not two.
    """
    jobs, configs, tau, now = board.jobs, board.facts.configs, board.tau, board.clock[at.NOW]
    own = int(jobs[job, at.APPLICATION])
    rate, least_rate = board.planning_rate[own], board.least_rate[own]
    types, offers = notes.types, notes.offers[own]
    left = max(jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS], 1e-12 * jobs[job, at.MAX_EPOCHS])
    fastest = left * jobs[job, at.MIN_TAU]
    time_left, weight, old = jobs[job, at.DUE] - now, jobs[job, at.WEIGHT], jobs[job, at.OLD_CONFIG]
    cheapest = int(jobs[job, at.CHEAPEST])
    floor = left * tau[job, cheapest] * least_rate[cheapest] if cheapest >= 0 else least
    inverse_most = 1.0 / types[0, of.MOST]
    for c in range(configs.shape[0]):
        if tau[job, c] == np.inf:
            out[c, :] = 0.0
            continue
        v = configs[c, at.CONFIG_TYPE]
        seconds, mean_s = left * tau[job, c], expected * tau[job, c]
        slack, inverse_s = time_left - seconds, 1.0 / seconds
        energy = seconds * rate[c]
        worst = energy + weight * max(0.0, -slack)
        mean = mean_s * rate[c] + weight * max(0.0, mean_s - time_left)
        added = seconds * added_rate(board, notes.spare, own, c)
        full = seconds * least_rate[c]
        out[c, PLACEABLE] = mask[c + 1]
        out[c, IN_TIME] = 0.0 if misses(seconds, time_left) else 1.0
        out[c, IN_TIME_EXPECTED] = 0.0 if misses(mean_s, time_left) else 1.0
        out[c, ENERGY] = 1.0 - least * inverse_s * offers[c, of.INVERSE_RATE] if rate[c] > 0.0 else 0.0
        out[c, WORST_COST] = worst / (worst + least) if worst > 0.0 else 0.0
        out[c, EXPECTED_COST] = mean / (mean + least) if mean > 0.0 else 0.0
        out[c, SPEED] = 1.0 - fastest * inverse_s
        out[c, SLACK] = slack / (fastest + abs(slack))
        out[c, RATE] = offers[c, of.RATE_SHARE]
        out[c, GPUS] = offers[c, of.SIZE_SHARE]
        out[c, SHARE] = offers[c, of.GPU_PART]
        out[c, HELD] = 1.0 if old == c else 0.0
        out[c, TYPE_FREE] = cluster[v, FREE]
        spare_gpus, in_use = _after(board, notes.spare, c)
        out[c, FREE_BLOCK_AFTER] = min(1.0, spare_gpus * inverse_most)
        out[c, IN_USE] = in_use
        out[c, ADDED_COST] = added / (added + floor) if added > 0.0 else 0.0
        out[c, FULL_COST] = full / (full + floor) if 0.0 < full < np.inf else 0.0
        out[c, NEAR_SLACK] = slack / (ONE_PERCENT * seconds + abs(slack))


@lean_kernel
def added_rate(board: Board, spare: Ints, application: int, c: int) -> float:
    """Return the increase of the cluster's cost rate if an application got configuration c now [€/s].

    Whole GPUs go to the fullest node in use with enough free GPUs, else to an idle node; for other kinds of
    configurations it is the rate of a job alone.
    """
    configs, node_rate = board.facts.configs, board.node_rate
    gpus, v = configs[c, at.CONFIG_GPUS], configs[c, at.CONFIG_TYPE]
    busy = spare[v, of.SPARE_COLUMNS + gpus]
    if busy == 0 or configs[c, at.CONFIG_UNITS] > 0 or configs[c, at.CONFIG_NODES] > 1:
        return board.planning_rate[application, c]
    return hooks.planned_rate(board, application, c, node_rate[v, busy + gpus] - node_rate[v, busy])


@lean_kernel
def _after(board: Board, spare: Ints, c: int) -> tuple[float, float]:
    """Count the GPUs left on the emptiest node of its type after configuration c; and whether it fits on one in use."""
    configs, capacity = board.facts.configs, board.capacity
    v, gpus = configs[c, at.CONFIG_TYPE], configs[c, at.CONFIG_GPUS]
    gap = capacity[v, at.FREE_BLOCK]
    if configs[c, at.CONFIG_SPREAD] > 0:
        gpus = configs[c, at.CONFIG_NODES]
    elif configs[c, at.CONFIG_NODES] > 1:
        return gap if capacity[v, at.EMPTY] > configs[c, at.CONFIG_NODES] else spare[v, of.FREE_BLOCK_IN_PART], 0.0
    if gpus == 1 and 0 < configs[c, at.CONFIG_UNITS] <= capacity[v, at.FREE_SHARE]:
        return gap, 1.0
    return max(0, gap - gpus), 1.0 if spare[v, of.FREE_BLOCK_IN_USE] >= gpus else 0.0


_queue = Names()
JOBS = _queue("log10(1 + other active jobs) / 5")
WAITING = _queue("log10(1 + other jobs that hold nothing) / 5")
WAITING_SHARE = _queue("share of the other active jobs that hold nothing")
LATE_SHARE = _queue("share of the other active jobs that are late")
MEAN_SLACK = _queue("mean of squash(D / T) over the other active jobs")
LEAST_SLACK = _queue("least squash(D / T) of the other active jobs")
WEIGHT = _queue("ω / (ω + mean ω of the other active jobs)")
STILL_TO_ASK = _queue("squash(jobs still to be asked in this round / free GPUs)")
QUEUE_FEATURES = tuple(_queue)


@lean_kernel
def write_queue(board: Board, notes: Notes, job: int, free: int, out: Singles) -> None:
    """Write statistics of the other active jobs: the tallies of all but the current job."""
    jobs, count, tallies, sums = board.jobs, board.count, notes.tallies, notes.sums
    others = count[at.ACTIVE] - 1
    waiting = tallies[of.WAITING] - (1 if jobs[job, at.CONFIG] < 0 else 0)
    late = tallies[of.LATE] - (1 if jobs[job, at.DUE] - board.clock[at.NOW] < 0.0 else 0)
    own = jobs[job, at.WEIGHT]
    mean = max(0.0, sums[of.WEIGHT] - own) / max(1, others)
    out[JOBS] = min(1.0, np.log10(1.0 + others) / 5.0)
    out[WAITING] = min(1.0, np.log10(1.0 + waiting) / 5.0)
    out[WAITING_SHARE] = waiting / max(1, others)
    out[LATE_SHARE] = late / max(1, others)
    out[MEAN_SLACK] = (sums[of.SLACK] - slack_ratio(board, job)) / others if others > 0 else 0.0
    out[LEAST_SLACK] = sums[of.SECOND] if job == tallies[of.TIGHTEST_JOB] else sums[of.TIGHTEST]
    out[WEIGHT] = 1.0 if others == 0 else own / (own + mean) if own + mean > 0.0 else 0.5
    out[STILL_TO_ASK] = squash((count[at.TO_ASK] - count[at.ASKED]) / max(1, free))


@lean_kernel
def observe(
    board: Board,
    notes: Notes,
    job: Singles,
    options: Singles,
    cluster: Singles,
    queue: Singles,
    jobs: Singles,
    mask: Mask,
) -> None:
    """Write the observation and the mask of the current job; all zeros, and only wait allowed, when the run is over.

    Args:
        board: The run.
        notes: State that its observations keep; updated.
        job: Features of the current job.
        options: Features of every configuration, (C, features); with those of mechanisms if it has columns for them.
        cluster: Features of every GPU type, (V, features).
        queue: Features of the other active jobs.
        jobs: Rows of single other jobs, (K, features), of the K for which the notes were made.
        mask: What can be placed now, (1 + C,).
    """
    count = board.count
    free = write_spare(board, notes.spare)
    if count[at.TO_ASK] == count[at.ASKED]:
        notes.tallies[:] = 0
        notes.tallies[ROUND] = -1
        write_cluster(board, notes, cluster)
        job[:] = 0.0
        options[:, :] = 0.0
        queue[:] = 0.0
        jobs[:, :] = 0.0
        mask[:] = 0
        mask[0] = 1
        return
    if bring_up_to_date(board, notes) and jobs.shape[0] > 0:
        count_jobs(board, notes)
    write_cluster(board, notes, cluster)
    current_job = board.order[count[at.ASKED]]
    write_mask(board, current_job, mask)
    expected, least = write_job(board, current_job, job)
    write_options(board, notes, current_job, expected, least, cluster, mask, options)
    if options.shape[1] > len(OPTION_FEATURES):
        options[:, len(OPTION_FEATURES) :] = 0.0
        hooks.write_features(board, current_job, mask, options)
    write_queue(board, notes, current_job, free, queue)
    if jobs.shape[0] > 0:
        write_jobs(board, notes, current_job, jobs)
